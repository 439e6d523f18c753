//! Known fields, descriptions and nodes by emulated version.

use http::Method;
use kube_test_control_plane::actors::ActorsConfig;
use kube_test_control_plane::{EmulatedVersion, ServerGates, TestControlPlane};
use serde_json::{Value, json};

use crate::support::{Answer, Plane, exchange, get_as};

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const VERSIONS: [EmulatedVersion; 2] = [EmulatedVersion::V1_36, EmulatedVersion::V1_37];

/// A set whose pods have a field of 1.37, and one of no version.
fn set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
        "spec": {
            "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{"name": "c", "image": "img:1", "imagee": "x"}],
                    "evictionResponders": [{"name": "a.example/b", "priority": 1}],
                },
            },
        },
    })
}

async fn started(version: EmulatedVersion) -> Plane {
    let builder = TestControlPlane::builder().emulated_version(version);
    Plane::new(builder.start().await)
}

fn pod_spec(set: &Value) -> &Value {
    &set["spec"]["template"]["spec"]
}

async fn send(plane: &Plane, method: Method, path: &str, of: &str, body: &Value) -> Answer {
    let headers = [("Content-Type", of)];
    exchange(plane.0.server(), method, path, &headers, body.to_string()).await
}

#[tokio::test(start_paused = true)]
async fn fields_of_later_versions_are_pruned() {
    for version in VERSIONS {
        let plane = started(version).await;
        let created = plane.create(SETS, &set()).await;
        let is_known = version == EmulatedVersion::V1_37;
        let spec = pod_spec(&created);
        assert_eq!(spec.get("evictionResponders").is_some(), is_known);
        assert_eq!(spec["containers"][0].get("imagee"), None);

        let path = format!("{SETS}?fieldValidation=Strict");
        let answer = send(&plane, Method::POST, &path, "application/json", &set()).await;
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("containers[0].imagee"), "{message}");
        assert_eq!(message.contains("evictionResponders"), !is_known);
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn applied_fields_must_be_declared_in_the_version() {
    for version in VERSIONS {
        let plane = started(version).await;
        let mut config = set();
        let container = &mut config["spec"]["template"]["spec"]["containers"][0];
        container.as_object_mut().unwrap().remove("imagee");
        let path = format!("{SETS}/web?fieldManager=me");
        let apply = "application/apply-patch+yaml";
        let answer = send(&plane, Method::PATCH, &path, apply, &config).await;
        if version == EmulatedVersion::V1_37 {
            assert_eq!(answer.code, 201, "{}", answer.text());
            let fields = &answer.json()["metadata"]["managedFields"][0]["fieldsV1"];
            let owned = &fields["f:spec"]["f:template"]["f:spec"]["f:evictionResponders"];
            assert!(
                owned.get("k:{\"name\":\"a.example/b\"}").is_some(),
                "{owned}"
            );
        } else {
            assert_eq!(answer.code, 500, "{}", answer.text());
            let undeclared = ".spec.template.spec.evictionResponders: field not declared in schema";
            assert!(answer.text().contains(undeclared), "{}", answer.text());
        }
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn strategic_patches_merge_lists_of_the_version() {
    let plane = started(EmulatedVersion::V1_37).await;
    plane.create(SETS, &set()).await;
    let more = json!([{"name": "c.example/d", "priority": 2}]);
    let patch = json!({"spec": {"template": {"spec": {"evictionResponders": more}}}});
    let strategic = "application/strategic-merge-patch+json";
    let path = format!("{SETS}/web");
    let answer = send(&plane, Method::PATCH, &path, strategic, &patch).await;
    let patched = answer.json();
    let responders = pod_spec(&patched)["evictionResponders"].as_array();
    assert_eq!(responders.map(Vec::len), Some(2), "{patched}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn version_can_change_at_run_time() {
    let plane = started(EmulatedVersion::V1_37).await;
    plane.create(SETS, &set()).await;
    let older = EmulatedVersion::V1_36;
    let server = plane.0.server();
    server.set_emulated_version(older, ServerGates::at(older));
    let path = format!("{SETS}/web");
    let mut stored = plane.get(&path).await;
    assert!(pod_spec(&stored).get("evictionResponders").is_some());
    stored["spec"]["replicas"] = json!(2);
    let (code, written) = plane.call(Method::PUT, &path, &stored).await;
    assert_eq!(code, 200, "{written}");
    assert_eq!(pod_spec(&written).get("evictionResponders"), None);
    let version = get_as(server, "/version", "application/json").await.json();
    assert_eq!(version["minor"], "36");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_have_the_version() {
    for (version, kubelet) in VERSIONS.into_iter().zip(["v1.36.2", "v1.37.0"]) {
        let actors = ActorsConfig::all();
        let builder = TestControlPlane::builder().emulated_version(version);
        let plane = Plane::new(builder.actors(actors).start().await);
        let node = plane.get("/api/v1/nodes/node-0").await;
        assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], kubelet);
        plane.stop().await;
    }
}

async fn document(plane: &Plane, name: &str) -> Value {
    let path = format!("/openapi/v3/{name}");
    let server = plane.0.server();
    get_as(server, &path, "application/json").await.json()
}

#[tokio::test(start_paused = true)]
async fn documents_have_the_version() {
    for (version, full) in VERSIONS.into_iter().zip(["v1.36.2", "v1.37.0"]) {
        let plane = started(version).await;
        let document = document(&plane, "apis/apps/v1").await;
        assert_eq!(document["info"]["version"], full);
        plane.stop().await;
    }
}

#[cfg(feature = "openapi")]
#[tokio::test(start_paused = true)]
async fn fields_of_the_version_are_described() {
    for version in VERSIONS {
        let plane = started(version).await;
        let document = document(&plane, "apis/apps/v1").await;
        let schemas = &document["components"]["schemas"];
        let member = |of: &str, name: &str| schemas[of]["properties"][name].clone();
        let strategy = member("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", "type");
        let responders = member("io.k8s.api.core.v1.PodSpec", "evictionResponders");
        let mode = member("io.k8s.api.core.v1.EmptyDirVolumeSource", "mode");
        if version == EmulatedVersion::V1_36 {
            assert_eq!(strategy["enum"], json!(["OnDelete", "RollingUpdate"]));
            assert_eq!((responders, mode), (Value::Null, Value::Null));
        } else {
            let strategies = json!(["OnDelete", "Recreate", "RollingUpdate"]);
            assert_eq!(strategy["enum"], strategies);
            assert_eq!(responders["x-kubernetes-list-map-keys"], json!(["name"]));
            assert_eq!(mode["format"], "int32");
        }
        plane.stop().await;
    }
}
