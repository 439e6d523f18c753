//! The texts of `why`.

use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};

use crate::stage::{SET, SETS, Stage, web};

/// A cluster with the stuck set `web` and the complete set `db`.
pub(crate) async fn two_sets() -> Stage {
    let stage = Stage::start().await;
    let mut db = web(1);
    db["metadata"]["name"] = json!("db");
    db["spec"]["selector"]["matchLabels"] = json!({"app": "db"});
    db["spec"]["template"]["metadata"]["labels"] = json!({"app": "db"});
    stage.create(SETS, &db).await;
    stage.create(SETS, &web(3)).await;
    stage.pass(60).await;
    for behaviour in [json!("{}"), Value::Null] {
        let annotations = json!({"kubelet.test-control-plane/image-pull-failure": behaviour});
        let template = json!({"metadata": {"annotations": annotations}});
        stage
            .patch(SET, &json!({"spec": {"template": template}}))
            .await;
        stage.pass(150).await;
    }
    stage
}

#[tokio::test(start_paused = true)]
async fn details_give_cause_evidence_and_command() {
    let stage = two_sets().await;
    let text = stage.sts("why web").await;
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("default/web: 2 of 3 ready, 2 updated, "),
        "{text}"
    );
    assert!(
        lines[1].starts_with("stuck for 4m59s: pod web-2 is broken in the older revision web-"),
        "{text}"
    );
    assert_eq!(lines[2], "  waiting   pod web-2 is not running and ready");
    assert!(
        lines[3].starts_with("  evidence  container app: ImagePullBackOff: "),
        "{text}"
    );
    let command = "  resolve   kubectl -n default delete pod web-2";
    assert!(lines.contains(&command), "{text}");
}

#[tokio::test(start_paused = true)]
async fn table_lists_only_unsettled_sets_unless_named() {
    let stage = two_sets().await;
    let text = stage.sts("why").await;
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(
        text.contains("default    web  2/3    stuck  4m59s  old-revision-blocks"),
        "{text}"
    );
    assert_eq!(stage.sts("why -A").await, text);
    let named = stage.sts("why db web").await;
    assert!(
        named.contains("default    db   1/1    settled  -"),
        "{named}"
    );
    assert_eq!(named.lines().count(), 3, "{named}");
    assert_eq!(
        stage.sts("why -n kube-system").await,
        "every set is complete\n"
    );
}

#[tokio::test(start_paused = true)]
async fn unreadable_evidence_is_named() {
    let stage = two_sets().await;
    let jane = stage.reader("jane", &["get", "list"]).await;
    let text = stage.sts_as(jane, "why web").await;
    assert!(
        text.contains("kubectl -n default delete pod web-2"),
        "{text}"
    );
    let events = "incomplete: list events in namespace default: needs permission to list events";
    assert!(text.contains(events), "{text}");
    assert!(
        text.contains("incomplete: list nodes: needs permission to list nodes"),
        "{text}"
    );
    let writes = stage
        .plane
        .server()
        .audit()
        .matching(|it| it.is_write() && it.user == "jane");
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn undecodable_pod_does_not_affect_other_answers() {
    let stage = two_sets().await;
    let path = "/api/v1/namespaces/default/pods/db-0";
    let mut pod = stage
        .ask("GET", path, "application/json", &Value::Null)
        .await;
    pod["metadata"]["labels"]["odd"] = json!(7);
    let stored = stage.plane.server().store_as_is(pod.to_string().as_bytes());
    stored.expect("the store takes any object");
    let text = stage.sts("why db -o json").await;
    assert!(
        text.contains("Pod default/db-0 cannot be decoded: invalid type: integer `7`"),
        "{text}"
    );
    assert!(text.contains("undecodable-object"), "{text}");
    let text = stage.sts("why web").await;
    assert!(
        text.contains("old-revision") || text.contains("web-2"),
        "{text}"
    );
    let plan = stage.sts("plan db --replicas 2").await;
    assert!(
        plan.starts_with("error: Pod default/db-0 cannot be decoded"),
        "{plan}"
    );
    let history = stage.sts("history db").await;
    let note = "incomplete: Pod default/db-0 cannot be decoded";
    assert!(history.contains(note), "{history}");
}

#[tokio::test(start_paused = true)]
async fn exhausted_budgets_are_evidence() {
    let stage = two_sets().await;
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
    });
    stage.create(budgets, &budget).await;
    let status = json!({"status": {
        "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 3, "expectedPods": 3}});
    stage.patch(&format!("{budgets}/all/status"), &status).await;
    let text = stage.sts("why web").await;
    let line = "PodDisruptionBudget all allows 0 evictions (2 pods healthy, 3 required)";
    assert!(text.contains(line), "{text}");
    let plan = stage.sts("plan web --image app=app:3").await;
    let line = "BUDGET: PodDisruptionBudget all requires 3 healthy pods, at least 2 stay ready";
    assert!(plan.contains(line), "{plan}");
}

#[tokio::test(start_paused = true)]
async fn missing_permissions_are_named() {
    let stage = two_sets().await;
    let jane = stage.plane.client_as(Identity::user("jane"));
    let text = stage.sts_as(jane, "why web").await;
    let start =
        "error: read StatefulSet web: needs permission to get statefulsets in namespace default: ";
    assert!(text.starts_with(start), "{text}");
}
