//! Recreations that are refused before anything is written.

use kube_test_control_plane::audit::AuditEntry;
use serde_json::{Value, json};

use super::{CHANGE, RECORDS, owning, records, settled};
use crate::stage::{SET, SETS, Stage, web};

/// Checks the refusal of a command, which writes nothing.
async fn assert_refused(stage: &Stage, command: &str, error: &str) {
    let before = stage.get(SET).await;
    let text = stage.sts(command).await;
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(last, format!("error: {error}"), "{text}");
    assert_eq!(stage.get(SET).await, before, "{command}");
    assert!(records(stage).await.is_empty(), "{command}");
}

/// A manifest in a file, for the flag `-f`.
fn file(name: &str, set: &Value) -> String {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("recreate-{name}-{}.yaml", std::process::id()));
    std::fs::write(&path, set.to_string()).expect("the manifest is written");
    path.display().to_string()
}

#[tokio::test(start_paused = true)]
async fn change_that_orphans_or_traps_pods_is_refused() {
    let stage = settled(&web(2)).await;
    let claim = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }})
    };
    let claims = json!([claim("data"), claim("logs")]).to_string();
    let error = "pod web-0 has no volume for claim template logs, and the controller would try \
                 indefinitely to add it (kubernetes/kubernetes#141876): scale StatefulSet web to 0 \
                 first, or keep its claim templates";
    let command = format!("recreate web --set volumeClaimTemplates={claims}");
    assert_refused(&stage, &command, error).await;

    let labels = "--set selector.matchLabels.tier=db --set template.metadata.labels.tier=db";
    let error = "the new selector of StatefulSet web doesn't select pod web-0, which no controller \
                 would manage: keep the selector, or label the pod first";
    assert_refused(&stage, &format!("recreate web {labels}"), error).await;
    for pod in ["web-0", "web-1"] {
        let path = format!("/api/v1/namespaces/default/pods/{pod}");
        let labels = json!({"metadata": {"labels": {"tier": "db"}}});
        stage.patch(&path, &labels).await;
    }
    let text = stage.sts(&format!("recreate web {labels}")).await;
    let error = "doesn't select revision web-";
    assert!(
        text.starts_with("error: ") && text.contains(error),
        "{text}"
    );

    let selector = "--set selector.matchLabels.tier=db";
    let text = stage.sts(&format!("recreate web {selector}")).await;
    let error = "error: the server would refuse the new set: ";
    assert!(text.starts_with(error), "{text}");
    assert!(text.contains("does not match template `labels`"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn another_name_and_a_change_without_need_are_refused() {
    let stage = settled(&web(2)).await;
    let error = "the new set is named db, not web: a recreation keeps the name, because pods and \
                 claims are named after it";
    assert_refused(
        &stage,
        "recreate web --set metadata.name=db --set serviceName=db",
        error,
    )
    .await;
    let mut other = web(2);
    other["metadata"]["name"] = json!("db");
    let path = file("name", &other);
    let error = "the manifest is for StatefulSet db, not web: a recreation keeps the name, because \
                 pods and claims are named after it";
    assert_refused(&stage, &format!("recreate web -f {path}"), error).await;
    let error = "StatefulSet db doesn't exist in namespace default: a recreation keeps the name";
    assert_refused(&stage, &format!("recreate -f {path}"), error).await;
    let error = "no immutable field of StatefulSet web changes: change it with kubectl apply or \
                 kubectl patch";
    assert_refused(&stage, "recreate web --set replicas=3", error).await;
}

#[tokio::test(start_paused = true)]
async fn restarts_and_losses_need_consent() {
    let stage = settled(&web(2)).await;
    let image = "recreate web --set serviceName=db \
                 --set template.spec.containers[app].image=app:3";
    let error = "the recreation would restart or remove web-0, web-1; accept this with \
                 --allow-restarts";
    assert_refused(&stage, image, error).await;
    let text = stage.sts(&format!("{image} --allow-restarts")).await;
    assert!(text.contains("\nrestart web-0, web-1\n"), "{text}");
    let end = "StatefulSet web is recreated; its controller goes on to restart or remove web-0, \
               web-1\n";
    assert!(text.ends_with(end), "{text}");

    let mut set = web(3);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenScaled": "Delete"});
    let stage = settled(&set).await;
    let smaller = "recreate web --set serviceName=db --set replicas=1 --allow-restarts";
    let error = "the recreation would lose data or make no pod ready at some point; change the set \
                 without this first";
    assert_refused(&stage, smaller, error).await;
    let text = stage.sts(&format!("{smaller} --dry-run")).await;
    assert!(text.contains("\nremove  web-1, web-2\n"), "{text}");
    assert!(text.contains("DATA LOSS: claim data-web-2"), "{text}");
    assert!(
        text.ends_with("nothing was written\nexit code 2\n"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn controllers_that_would_adopt_first_are_named() {
    let stage = settled(&web(2)).await;
    let apps = "/apis/apps/v1/namespaces/default";
    let rival = |labels: Value, replicas: Value| {
        let pod = json!({
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        });
        json!({"metadata": {"name": "rival"}, "spec": {
            "selector": {"matchLabels": labels}, "template": pod, "replicas": replicas,
        }})
    };
    let labels = json!({"app": "web"});
    stage
        .create(
            &format!("{apps}/replicasets"),
            &rival(labels.clone(), json!(0)),
        )
        .await;
    let error = "ReplicaSet rival selects pod web-0 as well, and would adopt it before the new set: \
                 make their selectors differ first";
    assert_refused(&stage, CHANGE, error).await;
    stage
        .ask(
            "DELETE",
            &format!("{apps}/replicasets/rival"),
            "application/json",
            &Value::Null,
        )
        .await;
    stage.pass(10).await;
    let mut set = rival(labels, json!(0));
    set["spec"]["serviceName"] = json!("rival");
    stage.create(SETS, &set).await;
    let text = stage.sts(CHANGE).await;
    assert!(
        text.starts_with("error: StatefulSet rival selects revision web-"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn finalizers_and_missing_permissions_are_found_first() {
    let stage = settled(&owning(2)).await;
    let jane = stage
        .reader("jane", &["get", "list", "create", "delete", "patch"])
        .await;
    let text = stage.sts_as(jane, CHANGE).await;
    let error = "error: read /api/v1/namespaces/default/configmaps/statefulset-controller-manager-";
    assert!(text.starts_with(error), "{text}");
    let mark = stage.plane.server().audit().mark();
    let joe = stage
        .reader("joe", &["get", "list", "delete", "patch"])
        .await;
    grant_records(&stage, "joe").await;
    let text = stage.sts_as(joe, CHANGE).await;
    let error = "error: ask the server about the new set: needs permission to create statefulsets \
                 in namespace default\n";
    assert_eq!(text, error);
    let ann = stage
        .reader("ann", &["get", "list", "create", "patch"])
        .await;
    grant_records(&stage, "ann").await;
    let text = stage.sts_as(ann, CHANGE).await;
    let error = "error: the server would refuse to delete StatefulSet web: ";
    assert!(text.contains(error), "{text}");
    let is_own = |entry: &AuditEntry| entry.is_change() && ["joe", "ann"].contains(&&*entry.user);
    let writes = stage.plane.server().audit().since(mark, is_own);
    let writes = writes.expect("a short log");
    assert_eq!(writes.first().map(AuditEntry::summary), None);

    let finalizers = json!({"metadata": {"finalizers": ["example.com/backup"]}});
    stage.patch(SET, &finalizers).await;
    let error = "StatefulSet web has the finalizer example.com/backup, whose owner would treat the \
                 recreation as the end of the set: remove it first";
    assert_refused(&stage, CHANGE, error).await;
}

/// Lets a user manage records.
async fn grant_records(stage: &Stage, user: &str) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let (name, group) = (format!("{user}-records"), "rbac.authorization.k8s.io");
    let verbs = ["get", "create", "delete"];
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs});
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    stage.create(&format!("{rbac}/roles"), &role).await;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    });
    stage
        .create(&format!("{rbac}/rolebindings"), &binding)
        .await;
}

#[tokio::test(start_paused = true)]
async fn manifest_is_merged_as_by_apply() {
    let stage = Stage::start().await;
    let mut set = web(2);
    let applied = set.to_string();
    set["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": applied});
    stage.create(SETS, &set).await;
    stage.pass(60).await;
    stage.patch(SET, &json!({"spec": {"replicas": 3}})).await;
    stage.pass(60).await;
    let mut new = web(2);
    new["spec"]["serviceName"] = json!("db");
    new["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("replicas");
    let path = file("merge", &new);
    let text = stage.sts(&format!("recreate web -f {path}")).await;
    // As with apply, a field that left the manifest gets its default.
    assert!(text.contains("change  spec.replicas: 3 to 1"), "{text}");
    assert!(
        text.contains("note    kubectl apply made this set"),
        "{text}"
    );
    assert!(
        text.contains("would restart or remove web-1, web-2"),
        "{text}"
    );
    new["spec"]["replicas"] = json!(3);
    let path = file("merge", &new);
    let text = stage.sts(&format!("recreate web -f {path}")).await;
    assert!(text.ends_with("StatefulSet web is recreated\n"), "{text}");
    let found = stage.get(SET).await;
    let annotations = &found["metadata"]["annotations"];
    let applied = annotations["kubectl.kubernetes.io/last-applied-configuration"].as_str();
    let applied: Value = serde_json::from_str(applied.expect("a text")).expect("JSON");
    assert_eq!(applied, new);
    assert_eq!(found["spec"]["serviceName"], "db");
    assert_eq!(
        stage.get(RECORDS).await["items"].as_array().map(Vec::len),
        Some(0)
    );
}
