//! Tests of pod names that determine a pod's set, and of invalid names.

use integration::stateful_sets::{name, scale_only, uid};
use serde_json::{Value, json};
use statefulset_client::resource::{PODS, SERVICE_ACCOUNTS, STATEFUL_SETS};

use crate::harness::{Fixture, identities, names, owner, web};

/// An orphan of this name with labels that the set selects.
fn orphan(name: &str) -> Value {
    let template = &web(1, "web:1")["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": template["metadata"], "spec": template["spec"],
    });
    pod["metadata"]["name"] = name.into();
    pod["spec"]["containers"][0]["volumeMounts"] = json!([]);
    pod
}

fn without_claims(set_name: &str, replicas: u32) -> Value {
    let mut set = web(replicas, "web:1");
    set["metadata"]["name"] = set_name.into();
    set["spec"]["volumeClaimTemplates"] = json!([]);
    set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!([]);
    set
}

#[tokio::test(start_paused = true)]
async fn orphan_matching_two_sets_is_adopted_by_name() {
    integration::embedded_only!("counts requests and delays collectors");
    let fixture = Fixture::start().await;
    let found = fixture.space.create(&PODS, &orphan("web-1")).await;
    let other = fixture.bring_up(&without_claims("other", 2)).await;
    assert_eq!(owner(&fixture.space.get(&PODS, "web-1").await), "");
    let web = fixture.bring_up(&without_claims("web", 2)).await;
    let pods = fixture.pods().await;
    assert_eq!(names(&pods), ["other-0", "other-1", "web-0", "web-1"]);
    let owners: Vec<&str> = pods.iter().map(owner).collect();
    assert_eq!(owners, [&*other, &other, &web, &web]);
    // Its revision is unknown, so it was replaced like an outdated pod.
    assert_ne!(uid(&pods[3]), uid(&found));

    // Two more pods appear while both sets exist: one beyond its set's replicas, and one with a
    // foreign name.
    let (before, mark) = (identities(&pods), fixture.mark());
    fixture.take_log();
    for name in ["web-2", "webless"] {
        fixture.space.create(&PODS, &orphan(name)).await;
    }
    fixture.settle().await;
    assert_eq!(fixture.pod_writes(mark), ["patch web-2", "delete web-2"]);
    let after = fixture.pods().await;
    let (stranger, rest) = after.split_last().expect("there are pods");
    assert_eq!((name(stranger), owner(stranger)), ("webless", ""));
    assert_eq!(identities(rest), before);
    let log = fixture.take_log();
    let expected = "ERROR more than one StatefulSet is selecting pods with the same labels ";
    assert!(
        !log.is_empty() && log.iter().all(|line| line.starts_with(expected)),
        "{log:#?}"
    );
    fixture.expect_no_violations();
}

#[tokio::test(start_paused = true)]
async fn pods_with_malformed_member_names_stay_untouched() {
    integration::embedded_only!("counts requests and delays collectors");
    let fixture = Fixture::start().await;
    let decoys = ["web-01", "web--1", "web-99999999999", "web-1-debug"];
    for decoy in decoys {
        fixture.space.create(&PODS, &orphan(decoy)).await;
    }
    fixture.settle().await;
    let mut before = fixture.pods().await;
    let mark = fixture.mark();
    fixture.bring_up(&without_claims("web", 3)).await;
    scale_only(&fixture.space, "web", 1).await;
    fixture.until_complete("web").await;
    scale_only(&fixture.space, "web", 2).await;
    fixture.until_complete("web").await;
    fixture.delete_set("web", "Background").await;
    fixture.settle().await;
    let steps = [
        "create web-0",
        "create web-1",
        "create web-2",
        "delete web-2",
        "delete web-1",
        "create web-1",
    ];
    assert_eq!(fixture.pod_writes(mark), steps);
    let mut after = fixture.pods().await;
    for pods in [&mut before, &mut after] {
        pods.sort_by_key(|pod| name(pod).to_owned());
    }
    assert_eq!(identities(&after), identities(&before));
    assert!(after.iter().all(|pod| owner(pod).is_empty()));
    assert_eq!(fixture.take_log(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn set_name_too_long_for_pod_labels_is_reported() {
    integration::embedded_only!("counts requests and delays collectors");
    let fixture = Fixture::start().await;
    let long = "w".repeat(58);
    let set = without_claims(&long, 2);
    fixture.space.create(&STATEFUL_SETS, &set).await;
    fixture.settle().await;
    let warnings = fixture.warnings().await;
    let expected =
        format!("FailedCreate: Create Pod {long}-0 in StatefulSet {long} failed error: ");
    assert!(
        warnings.len() == 1 && warnings[0].starts_with(&expected),
        "{warnings:#?}"
    );
    assert!(
        warnings[0].contains("must be no more than 63"),
        "{warnings:#?}"
    );
    let log = fixture.take_log();
    assert_eq!(log.len(), 1, "{log:#?}");
    fixture.assert_only_failed_retries().await;
    assert_eq!(fixture.take_log(), [""; 0]);
    assert_eq!(fixture.revisions().await.len(), 1);
    assert_eq!(fixture.pods().await.len(), 0);
}

/// The server gives a service account both of its names, which are part of the revision's name. The
/// names are those of kube-controller-manager v1.36.2 with kube-apiserver v1.36.2.
#[tokio::test(start_paused = true)]
async fn revisions_with_service_accounts_have_the_reference_names() {
    let fixture = Fixture::start().await;
    for name in ["old-style", "new-style"] {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name},
        });
        fixture.space.create(&SERVICE_ACCOUNTS, &account).await;
    }
    for (set_name, accounts, revision) in [
        (
            "old",
            json!({"serviceAccount": "old-style"}),
            "old-79498b6948",
        ),
        (
            "new",
            json!({"serviceAccountName": "new-style"}),
            "new-5b98fd4687",
        ),
        (
            "both",
            json!({"serviceAccount": "old-style", "serviceAccountName": "new-style"}),
            "both-7795dc7cd4",
        ),
    ] {
        let mut spec = accounts;
        spec["containers"] = json!([{"name": "c", "image": "a:1"}]);
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": set_name},
            "spec": {
                "serviceName": set_name, "replicas": 1,
                "selector": {"matchLabels": {"app": set_name}},
                "template": {"metadata": {"labels": {"app": set_name}}, "spec": spec},
            },
        });
        fixture.bring_up(&set).await;
        let revisions = fixture.revisions().await;
        assert!(
            names(&revisions).contains(&revision),
            "{:?}",
            names(&revisions)
        );
    }
}
