//! The texts of `why`.

use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};

use crate::stage::{SET, SETS, Stage, web};

/// A cluster with the stuck set `web` and the complete set `db`.
async fn two_sets() -> Stage {
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
    assert_eq!(lines[2], "  waits for pod web-2 is not running and ready");
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
    let rule = json!({
        "apiGroups": ["", "apps"],
        "resources": ["pods", "persistentvolumeclaims", "statefulsets", "controllerrevisions"],
        "verbs": ["get", "list"],
    });
    let role = json!({"metadata": {"name": "reader"}, "rules": [rule]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    stage.create(&format!("{rbac}/roles"), &role).await;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
    });
    stage
        .create(&format!("{rbac}/rolebindings"), &binding)
        .await;
    let jane = stage.plane.client_as(Identity::user("jane"));
    let text = stage.sts_as(jane, "why web").await;
    assert!(
        text.contains("kubectl -n default delete pod web-2"),
        "{text}"
    );
    let events = "not seen: list events in namespace default: (needs the right to list events";
    assert!(text.contains(events), "{text}");
    assert!(
        text.contains("not seen: list nodes: (needs the right to list nodes)"),
        "{text}"
    );
    let writes = stage
        .plane
        .server()
        .audit()
        .matching(|it| it.is_write() && it.user == "jane");
    assert!(writes.is_empty(), "{writes:?}");
}
