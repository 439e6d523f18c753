//! Shared behaviour of all updates: retries, types, protected deletion fields, generations.

use http::Method;
use kube_test_control_plane::{EmulatedVersion, ServerConfig, ServerGates, TestControlPlane};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Plane, raw};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const MERGE: &str = "application/merge-patch+json";

async fn start() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

fn workload(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "img:1"}]},
            },
        },
    })
}

async fn patch(plane: &Plane, path: &str, body: &Value) -> (u16, Value) {
    let (code, text) = raw(
        plane.0.server(),
        Method::PATCH,
        path,
        MERGE,
        body.to_string(),
    )
    .await;
    (code, serde_json::from_str(&text).unwrap())
}

async fn put(plane: &Plane, path: &str, body: &str) -> (u16, Value) {
    let json = "application/json";
    let (code, text) = raw(plane.0.server(), Method::PUT, path, json, body.to_owned()).await;
    (code, serde_json::from_str(&text).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn concurrent_patches_without_a_version_succeed() {
    let plane = TestControlPlane::builder().start().await;
    let server = plane.server().clone();
    let (code, _) = server
        .call_json(
            Method::POST,
            MAPS,
            "test",
            &json!({"metadata": {"name": "m"}}),
        )
        .await;
    assert_eq!(code, 201);
    let mut tasks = JoinSet::new();
    for n in 0..64 {
        let server = server.clone();
        tasks.spawn(async move {
            let (path, media) = if n % 2 == 0 {
                (format!("{MAPS}/m"), MERGE)
            } else {
                let manager = format!("{MAPS}/m?fieldManager=m{n}");
                (manager, "application/apply-patch+yaml")
            };
            let body = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
                "data": {format!("k{n}"): "v"},
            });
            raw(&server, Method::PATCH, &path, media, body.to_string())
                .await
                .0
        });
    }
    let codes = tasks.join_all().await;
    assert!(codes.iter().all(|code| *code == 200), "{codes:?}");
    let (_, map) = server
        .call_json(Method::GET, &format!("{MAPS}/m"), "test", &Value::Null)
        .await;
    assert_eq!(map["data"].as_object().unwrap().len(), 64);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn scale_is_validated_like_any_object() {
    let plane = start().await;
    plane.create(SETS, &workload("StatefulSet", "web")).await;
    let path = format!("{SETS}/web/scale");
    let (code, answer) = patch(&plane, &path, &json!({"spec": {"replicas": "3"}})).await;
    assert_eq!(code, 422, "{answer}");
    let message = answer["message"].as_str().unwrap();
    let start = " \"\" is invalid: patch: Invalid value: \"{\\\"apiVersion\\\":";
    assert!(message.starts_with(start), "{message}");
    let why = "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type \
               int32";
    assert!(message.ends_with(why), "{message}");
    for body in ["", "{}", r#"{"spec":{"replicas":7}}"#] {
        let (code, answer) = put(&plane, &path, body).await;
        assert_eq!(code, 400, "{body}: {answer}");
    }
    let of_pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"},
        "spec": {"replicas": 7}});
    assert_eq!(put(&plane, &path, &of_pod.to_string()).await.0, 400);
    assert_eq!(plane.get(&path).await["spec"]["replicas"], 1);
    let named = json!({"metadata": {"name": "web"}, "spec": {"replicas": 7, "replica": 8}});
    assert_eq!(put(&plane, &path, &named.to_string()).await.0, 200);
    let strict = format!("{path}?fieldValidation=Strict");
    assert_eq!(put(&plane, &strict, &named.to_string()).await.0, 400);
    assert_eq!(plane.get(&path).await["spec"]["replicas"], 7);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn replication_controller_scale_has_a_label_selector() {
    let plane = start().await;
    let path = "/api/v1/namespaces/default/replicationcontrollers";
    let mut body = workload("ReplicationController", "rc");
    body["apiVersion"] = json!("v1");
    body["spec"]["selector"] = json!({"app": "web"});
    plane.create(path, &body).await;
    let scale = plane.get(&format!("{path}/rc/scale")).await;
    assert_eq!(scale["status"]["selector"], "app=web");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wrong_types_are_rejected_despite_defaults() {
    let plane = start().await;
    let mut deployment = workload("Deployment", "web");
    deployment["spec"]["strategy"] = json!("Recreate");
    let mut daemons = workload("DaemonSet", "web");
    daemons["spec"]["updateStrategy"] = json!("OnDelete");
    let labelled = json!({"metadata": {"name": "n", "labels": "x"}});
    let flat = json!({"metadata": {"name": "n"}, "spec": "x"});
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"a": 1}});
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": 5, "ports": [{"port": 80}]}});
    for (path, body) in [
        (DEPLOYMENTS, deployment),
        ("/apis/apps/v1/namespaces/default/daemonsets", daemons),
        ("/api/v1/namespaces", labelled),
        ("/api/v1/namespaces", flat),
        ("/api/v1/namespaces/default/secrets", secret),
        ("/api/v1/namespaces/default/services", service),
    ] {
        let (code, answer) = plane.call(Method::POST, path, &body).await;
        assert_eq!(code, 400, "{answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("json: cannot unmarshal"), "{message}");
    }
    plane
        .create(DEPLOYMENTS, &workload("Deployment", "web"))
        .await;
    let path = format!("{DEPLOYMENTS}/web");
    let wrong = json!({"spec": {"strategy": "Recreate"}});
    let (code, answer) = patch(&plane, &path, &wrong).await;
    assert_eq!(code, 422, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(
        message.contains("is invalid: patch: Invalid value:"),
        "{message}"
    );
    assert!(
        message.contains("json: cannot unmarshal string"),
        "{message}"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn updates_cannot_start_a_deletion() {
    let plane = start().await;
    plane
        .create(
            MAPS,
            &json!({"metadata": {"name": "m", "finalizers": ["a/b"]}}),
        )
        .await;
    let path = format!("{MAPS}/m");
    let (code, answer) = patch(
        &plane,
        &path,
        &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    )
    .await;
    assert_eq!(code, 422);
    assert!(
        answer["message"].as_str().unwrap().contains(
            "metadata.deletionTimestamp: Invalid value: \"2026-01-01T00:00:00Z\": field is immutable"
        ),
        "{answer}"
    );
    let (code, _) = plane.call(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(code, 200);
    let deleting = plane.get(&path).await["metadata"].clone();
    // An attempt to revoke a deletion has no effect.
    let undo = json!({"metadata": {
        "deletionTimestamp": null, "deletionGracePeriodSeconds": null, "labels": {"a": "b"}}});
    let (code, after) = patch(&plane, &path, &undo).await;
    assert_eq!(code, 200);
    for member in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        assert_eq!(after["metadata"][member], deleting[member]);
    }
    let longer = json!({"metadata": {"deletionGracePeriodSeconds": 30}});
    assert_eq!(patch(&plane, &path, &longer).await.0, 422);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_deployment_annotations_increment_generation() {
    let plane = start().await;
    for (path, kind, generation) in [(DEPLOYMENTS, "Deployment", 2), (SETS, "StatefulSet", 1)] {
        plane.create(path, &workload(kind, "web")).await;
        let annotation = json!({"metadata": {"annotations": {"a": "b"}}});
        let (code, after) = patch(&plane, &format!("{path}/web"), &annotation).await;
        assert_eq!(code, 200);
        assert_eq!(after["metadata"]["generation"], generation, "{kind}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn collection_deletion_respects_the_limit() {
    let plane = start().await;
    for name in ["a", "b", "c"] {
        plane
            .create(MAPS, &json!({"metadata": {"name": name}}))
            .await;
    }
    let before = plane.get(MAPS).await["metadata"]["resourceVersion"].clone();
    let path = format!("{MAPS}?limit=2");
    let (code, answer) = plane.call(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(answer["metadata"]["resourceVersion"], before);
    assert_eq!(answer["items"].as_array().unwrap().len(), 2);
    let left = plane.get(MAPS).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert_eq!(left["items"][0]["metadata"]["name"], "c");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn max_unavailable_needs_its_feature_gate() {
    let mut body = workload("StatefulSet", "web");
    body["spec"]["updateStrategy"] = json!({"rollingUpdate": {"maxUnavailable": 2}});
    let rolling = |set: &Value| set["spec"]["updateStrategy"]["rollingUpdate"].clone();
    for (gate, stored, more) in [
        (false, json!({"partition": 0}), json!({"partition": 0})),
        (
            true,
            json!({"partition": 0, "maxUnavailable": 2}),
            json!({"partition": 0, "maxUnavailable": "50%"}),
        ),
    ] {
        let config = ServerConfig::default()
            .feature_gates(ServerGates::default().max_unavailable_stateful_set(gate));
        let builder = TestControlPlane::builder().server_config(config);
        let plane = Plane::new(builder.start().await);
        let set = plane.create(SETS, &body).await;
        assert_eq!(rolling(&set), stored);
        let change =
            json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}});
        let (code, set) = patch(&plane, &format!("{SETS}/web"), &change).await;
        assert_eq!(code, 200, "{set}");
        assert_eq!(rolling(&set), more);
        plane.stop().await;
    }
}

#[tokio::test]
async fn server_without_validation_stores_invalid_objects() {
    let config = ServerConfig::default().validates(false);
    let builder = TestControlPlane::builder().server_config(config);
    let plane = Plane::new(builder.start().await);
    let mut body = workload("StatefulSet", "web");
    body["spec"]["replicas"] = json!(-1);
    let set = plane.create(SETS, &body).await;
    assert_eq!(set["spec"]["replicas"], -1);
    assert_eq!(set["spec"]["podManagementPolicy"], "OrderedReady");
    let change = json!({"spec": {"serviceName": "other"}});
    let (code, set) = patch(&plane, &format!("{SETS}/web"), &change).await;
    assert_eq!(code, 200, "{set}");
    assert_eq!(set["metadata"]["generation"], 2);
    plane.stop().await;
}

/// A rollback keeps the stored type, but no update of the spec keeps it.
#[tokio::test]
async fn older_version_rejects_stored_recreate_sets() {
    let config = ServerConfig::default()
        .feature_gates(ServerGates::at(EmulatedVersion::V1_37).stateful_set_recreate_strategy(true))
        .emulated_version(EmulatedVersion::V1_37);
    let builder = TestControlPlane::builder().server_config(config);
    let plane = Plane::new(builder.start().await);
    let mut body = workload("StatefulSet", "web");
    body["spec"]["updateStrategy"] = json!({"type": "Recreate"});
    plane.create(SETS, &body).await;
    let path = format!("{SETS}/web");
    for (version, expected) in [(EmulatedVersion::V1_37, 200), (EmulatedVersion::V1_36, 422)] {
        let server = plane.0.server();
        server.set_emulated_version(version, ServerGates::at(version));
        let change = json!({"spec": {"minReadySeconds": version.minor()}});
        let (code, answer) = patch(&plane, &path, &change).await;
        assert_eq!(code, expected, "{answer}");
        let status = json!({"status": {"collisionCount": 1}});
        let (code, answer) = patch(&plane, &format!("{path}/status"), &status).await;
        assert_eq!(code, 200, "{answer}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn recreate_needs_its_gate() {
    for (gate, expected) in [(false, 422), (true, 200)] {
        let config = ServerConfig::default()
            .feature_gates(ServerGates::default().stateful_set_recreate_strategy(gate));
        let builder = TestControlPlane::builder().server_config(config);
        let plane = Plane::new(builder.start().await);
        let mut body = workload("StatefulSet", "web");
        body["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        plane.create(SETS, &body).await;
        let change = json!({"spec": {"updateStrategy": {"type": "Recreate"}}});
        let (code, answer) = patch(&plane, &format!("{SETS}/web"), &change).await;
        assert_eq!(code, expected, "{answer}");
        let field = &answer["details"]["causes"][0]["field"];
        assert_eq!(field == "spec.updateStrategy", !gate, "{answer}");
        body["metadata"]["name"] = json!("new");
        body["spec"]["updateStrategy"] = json!({"type": "Recreate"});
        if gate {
            let set = plane.create(SETS, &body).await;
            assert_eq!(set["spec"]["updateStrategy"], json!({"type": "Recreate"}));
        }
        plane.stop().await;
    }
}
