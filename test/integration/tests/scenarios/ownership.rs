//! Tests of pods and revisions that lose their set, and of sets that find orphans.

use std::time::Duration;

use integration::space::Patch;
use integration::stateful_sets::{name, uid};
use kube_test_control_plane::faults::GatePoint;
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use statefulset_client::resource::{PODS, STATEFUL_SETS};
use tokio::time::sleep;

use crate::harness::{Fixture, controller, identities, names, owner, web, write};

/// Longer than the garbage collector's delay.
const COLLECTED: Duration = Duration::from_secs(10);

/// Creates a set and deletes it, so that its dependents remain as orphans.
async fn orphans(fixture: &Fixture, set: &Value) {
    fixture.bring_up(set).await;
    fixture.delete_set(name(set), "Orphan").await;
    fixture.settle().await;
    assert_unowned(fixture).await;
}

/// Checks that pods and revisions exist and have no owner.
async fn assert_unowned(fixture: &Fixture) {
    let (pods, revisions) = (fixture.pods().await, fixture.revisions().await);
    assert!(!pods.is_empty() && !revisions.is_empty());
    for object in pods.iter().chain(&revisions) {
        assert_eq!(owner(object), "", "{object:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn set_being_orphaned_adopts_nothing() {
    integration::embedded_only!("counts requests and delays collectors");
    // The live set is read before revisions are adopted, and again before pods are.
    for looks in 0..2 {
        let fixture = Fixture::start().await;
        let set = web(2, "web:1");
        orphans(&fixture, &set).await;
        let before = identities(&fixture.pods().await);
        let look = controller().verb(Verb::Get).resource("statefulsets");
        let look = fixture.faults().gate(look);
        for _ in 0..looks {
            look.release();
        }
        fixture.space.create(&STATEFUL_SETS, &set).await;
        look.arrived(1).await;
        let adopted = fixture.revisions().await;
        assert_eq!(adopted.iter().any(|it| !owner(it).is_empty()), looks > 0);
        fixture.delete_set("web", "Orphan").await;
        sleep(COLLECTED).await;
        let mark = fixture.mark();
        look.open();
        fixture.settle().await;
        assert_eq!(fixture.pod_writes(mark), [""; 0]);
        assert_eq!(identities(&fixture.pods().await), before);
        assert_unowned(&fixture).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pod_adopted_during_orphaning_is_released_and_survives() {
    integration::embedded_only!("counts requests and delays collectors");
    let fixture = Fixture::start().await;
    let set = web(1, "web:1");
    orphans(&fixture, &set).await;
    let before = identities(&fixture.pods().await);
    let adopted = fixture
        .faults()
        .gate_at(GatePoint::AfterCommit, write(Verb::Patch, "pods"));
    let second = fixture.space.create(&STATEFUL_SETS, &set).await;
    adopted.arrived(1).await;
    assert_eq!(owner(&fixture.pods().await[0]), uid(&second));
    // The garbage collector orphans the set's dependents before the controller learns of its
    // adoption.
    fixture.delete_set("web", "Orphan").await;
    sleep(COLLECTED).await;
    assert_unowned(&fixture).await;
    adopted.open();
    fixture.settle().await;
    assert_eq!(identities(&fixture.pods().await), before);
    assert_unowned(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn orphans_with_another_template_are_adopted_and_replaced() {
    integration::embedded_only!("counts requests and delays collectors");
    let fixture = Fixture::start().await;
    orphans(&fixture, &web(3, "web:1")).await;
    let (old_pods, claims) = (fixture.pods().await, fixture.claims().await);
    // Another client changes one of them meanwhile.
    let label = json!({"metadata": {"labels": {"apps.kubernetes.io/pod-index": "7"}}});
    let patched = fixture
        .space
        .patch(&PODS, "web-1", "", Patch::Merge, &label);
    patched.await;
    let mark = fixture.mark();
    let set = fixture.bring_up(&web(3, "web:2")).await;
    let steps = [
        "patch web-0",
        "patch web-1",
        "patch web-2",
        "delete web-2",
        "create web-2",
        "delete web-1",
        "create web-1",
        "delete web-0",
        "create web-0",
    ];
    assert_eq!(fixture.pod_writes(mark), steps);
    for (pod, old) in fixture.pods().await.iter().zip(&old_pods) {
        assert_eq!((owner(pod), name(pod)), (&*set, name(old)));
        assert_ne!(uid(pod), uid(old));
        let index = name(pod).strip_prefix("web-");
        let label = pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"].as_str();
        assert_eq!(label, index, "{pod:#}");
    }
    assert_eq!(identities(&fixture.claims().await), identities(&claims));
    let mut numbers = Vec::new();
    for revision in fixture.revisions().await {
        assert_eq!(owner(&revision), set);
        numbers.push(revision["revision"].as_i64());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [Some(1), Some(2)]);
    fixture.expect_no_violations();
}

#[tokio::test(start_paused = true)]
async fn orphans_with_missing_claims_are_reported_and_kept() {
    integration::embedded_only!("counts requests and delays collectors");
    let fixture = Fixture::start().await;
    let mut set = web(2, "web:1");
    orphans(&fixture, &set).await;
    let before = identities(&fixture.pods().await);
    let templates = &mut set["spec"]["volumeClaimTemplates"];
    let mut further = templates[0].clone();
    further["metadata"]["name"] = json!("logs");
    templates.as_array_mut().expect("a list").push(further);
    fixture.take_log();
    fixture.space.create(&STATEFUL_SETS, &set).await;
    fixture.settle().await;
    // A pod's volumes are immutable.
    assert_eq!(identities(&fixture.pods().await), before);
    let warnings = fixture.warnings().await;
    let expected = "FailedUpdate: Update Pod web-0 in StatefulSet web failed error: ";
    assert!(
        warnings.iter().any(|it| it.starts_with(expected)),
        "{warnings:#?}"
    );
    let log = fixture.take_log();
    assert!(log.len() == 1 && log[0].contains("web-0"), "{log:#?}");
    fixture.assert_only_failed_retries().await;
    assert_eq!(fixture.take_log(), [""; 0]);

    for pod in ["web-0", "web-1"] {
        fixture.space.delete(&PODS, pod, None).await;
        fixture.settle().await;
    }
    fixture.until_complete("web").await;
    assert_eq!(
        names(&fixture.claims().await),
        ["data-web-0", "data-web-1", "logs-web-0", "logs-web-1"]
    );
    fixture.expect_no_violations();
}

#[tokio::test(start_paused = true)]
async fn relabelled_pod_is_released_and_its_name_conflict_reported() {
    integration::embedded_only!("counts requests and delays collectors");
    let fixture = Fixture::start().await;
    let set = fixture.bring_up(&web(2, "web:1")).await;
    let before = identities(&fixture.pods().await);
    fixture.take_log();
    let label = async |app: &str| {
        let labels = json!({"metadata": {"labels": {"app": app}}});
        let patched = fixture
            .space
            .patch(&PODS, "web-1", "", Patch::Merge, &labels);
        patched.await
    };
    label("other").await;
    fixture.settle().await;
    assert_eq!(owner(&fixture.space.get(&PODS, "web-1").await), "");
    let log = fixture.take_log();
    assert!(
        log.len() == 1 && log[0].contains(r#"pods "web-1" already exists"#),
        "{log:#?}"
    );
    fixture.assert_only_failed_retries().await;
    assert_eq!(fixture.take_log(), [""; 0]);
    assert_eq!(identities(&fixture.pods().await), before);

    label("web").await;
    fixture.until_complete("web").await;
    assert_eq!(owner(&fixture.space.get(&PODS, "web-1").await), set);
    assert_eq!(identities(&fixture.pods().await), before);
}
