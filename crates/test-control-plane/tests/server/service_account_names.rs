//! The two names of a pod's service account: the server keeps them equal.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::support::{Plane, exchange};

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";

fn template(names: &Value) -> Value {
    let mut spec = names.clone();
    spec["containers"] = json!([{"name": "c", "image": "a:1"}]);
    json!({"metadata": {"labels": {"a": "b"}}, "spec": spec})
}

fn set(names: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
        "spec": {
            "serviceName": "web", "selector": {"matchLabels": {"a": "b"}},
            "template": template(names),
        },
    })
}

/// The names in a pod, or in the template of a workload.
fn names(object: &Value) -> [Option<&str>; 2] {
    let specs = [
        "/spec/jobTemplate/spec/template/spec",
        "/spec/template/spec",
        "/template/spec",
        "/spec",
    ];
    let spec = specs
        .iter()
        .find_map(|pointer| object.pointer(pointer))
        .unwrap();
    ["serviceAccountName", "serviceAccount"].map(|name| spec[name].as_str())
}

async fn patched(plane: &Plane, format: &str, patch: &Value) -> Value {
    let format = format!("application/{format}");
    let headers = [("Content-Type", format.as_str())];
    let path = format!("{SETS}/web?fieldManager=m");
    let server = plane.0.server();
    let answer = exchange(server, Method::PATCH, &path, &headers, patch.to_string()).await;
    assert!(answer.code < 300, "{}", answer.text());
    answer.json()
}

#[tokio::test(start_paused = true)]
async fn created_objects_get_both_names() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    for (sent, account) in [
        (json!({"serviceAccount": "old"}), Some("old")),
        (json!({"serviceAccountName": "new"}), Some("new")),
        (
            json!({"serviceAccount": "old", "serviceAccountName": "new"}),
            Some("new"),
        ),
        (
            json!({"serviceAccount": "old", "serviceAccountName": ""}),
            Some("old"),
        ),
        (
            json!({"serviceAccount": "", "serviceAccountName": null}),
            None,
        ),
    ] {
        let created = plane
            .create(&format!("{SETS}?dryRun=All"), &set(&sent))
            .await;
        assert_eq!(names(&created), [account; 2], "{sent}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn all_kinds_with_pods_get_both_names() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let sent = json!({"serviceAccount": "old", "restartPolicy": "Never"});
    let job = json!({"template": template(&sent)});
    let always = template(&json!({"serviceAccount": "old"}));
    let selected = json!({"selector": {"matchLabels": {"a": "b"}}, "template": always});
    for (group, plural, kind, member, value) in [
        (
            "api/v1",
            "pods",
            "Pod",
            "spec",
            template(&sent)["spec"].clone(),
        ),
        (
            "api/v1",
            "podtemplates",
            "PodTemplate",
            "template",
            always.clone(),
        ),
        (
            "api/v1",
            "replicationcontrollers",
            "ReplicationController",
            "spec",
            json!({"selector": {"a": "b"}, "template": always}),
        ),
        (
            "apis/apps/v1",
            "deployments",
            "Deployment",
            "spec",
            selected.clone(),
        ),
        (
            "apis/apps/v1",
            "replicasets",
            "ReplicaSet",
            "spec",
            selected.clone(),
        ),
        (
            "apis/apps/v1",
            "daemonsets",
            "DaemonSet",
            "spec",
            selected.clone(),
        ),
        ("apis/batch/v1", "jobs", "Job", "spec", job.clone()),
        (
            "apis/batch/v1",
            "cronjobs",
            "CronJob",
            "spec",
            json!({"schedule": "* * * * *", "jobTemplate": {"spec": job}}),
        ),
    ] {
        let version = group.split_once('/').unwrap().1;
        let object = json!({
            "apiVersion": version, "kind": kind, "metadata": {"name": "a"}, member: value,
        });
        let path = format!("/{group}/namespaces/default/{plural}");
        let created = plane.create(&path, &object).await;
        assert_eq!(names(&created), [Some("old"); 2], "{kind}");
    }
    plane.stop().await;
}

/// A patch that changes only the older name has no effect, because the newer one wins.
#[tokio::test(start_paused = true)]
async fn updates_keep_the_names_equal() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane
        .create(SETS, &set(&json!({"serviceAccountName": "a"})))
        .await;
    let in_spec = |names: Value| json!({"spec": {"template": {"spec": names}}});
    let path = |name: &str| format!("/spec/template/spec/{name}");
    for (format, patch, account) in [
        (
            "merge-patch+json",
            in_spec(json!({"serviceAccountName": "b"})),
            Some("b"),
        ),
        (
            "merge-patch+json",
            in_spec(json!({"serviceAccount": "c"})),
            Some("b"),
        ),
        (
            "merge-patch+json",
            in_spec(json!({"serviceAccountName": null})),
            Some("b"),
        ),
        (
            "merge-patch+json",
            in_spec(json!({"serviceAccountName": null, "serviceAccount": "d"})),
            Some("d"),
        ),
        (
            "strategic-merge-patch+json",
            in_spec(json!({"serviceAccountName": "e"})),
            Some("e"),
        ),
        (
            "json-patch+json",
            json!([
                {"op": "remove", "path": path("serviceAccountName")},
                {"op": "replace", "path": path("serviceAccount"), "value": "f"},
            ]),
            Some("f"),
        ),
        (
            "merge-patch+json",
            in_spec(json!({"serviceAccountName": null, "serviceAccount": null})),
            None,
        ),
        (
            "apply-patch+yaml",
            set(&json!({"serviceAccount": "g"})),
            Some("g"),
        ),
    ] {
        let patched = patched(&plane, format, &patch).await;
        assert_eq!(names(&patched), [account; 2], "{patch}");
    }
    let replaced = set(&json!({"serviceAccount": "h"}));
    let (code, replaced) = plane
        .call(Method::PUT, &format!("{SETS}/web"), &replaced)
        .await;
    assert_eq!((code, names(&replaced)), (200, [Some("h"); 2]));
    plane.stop().await;
}
