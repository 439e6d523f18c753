//! Actors as clients of a real API server. An embedded one without actors stands in for it.

use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{ActorsConfig, Crash};
use kube_test_control_plane::cluster::{NoActors, TestCluster};
use kube_test_control_plane::restart::Restart;
use serde_json::{Value, json};

use crate::existing::config;

/// Real-time limit of a test's waits.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn send(client: &Client, method: Method, path: &str, body: &Value) -> Value {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    let request = request.body(body.to_string().into_bytes()).unwrap();
    client.request(request).await.unwrap()
}

async fn find(client: &Client, path: &str) -> Option<Value> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    match client.request(request).await {
        Ok(object) => Some(object),
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(err) => panic!("{path}: {err}"),
    }
}

/// Polls until the object satisfies `fits`.
pub(crate) async fn until(client: &Client, path: &str, fits: impl Fn(Option<&Value>) -> bool) {
    let waiting = async {
        while !fits(find(client, path).await.as_ref()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let done = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(done.is_ok(), "{path}: {:?}", find(client, path).await);
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "registry.example/main:1"}]},
    })
}

pub(crate) fn is_ready(pod: Option<&Value>) -> bool {
    let conditions = pod.and_then(|pod| pod.pointer("/status/conditions")?.as_array());
    let ready = |c: &Value| c["type"] == "Ready" && c["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(ready))
}

/// Starts a control plane without actors, in place of a bare API server.
async fn bare() -> TestControlPlane {
    TestControlPlane::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .start()
        .await
}

async fn connect(plane: &TestControlPlane) -> TestCluster {
    let config = config(&plane.kubeconfig().unwrap()).await;
    TestCluster::builder()
        .actors(ActorsConfig::all())
        .connect(config)
        .await
        .unwrap()
}

#[tokio::test]
async fn actors_serve_only_the_tests_namespaces() {
    let plane = bare().await;
    let cluster = connect(&plane).await;
    let client = cluster.client();
    let home = cluster.create_namespace("home").await.unwrap();
    let pods = format!("/api/v1/namespaces/{home}/pods");

    // The actors ignore other clients' objects.
    let elsewhere = "/api/v1/namespaces/default/pods";
    send(&client, Method::POST, elsewhere, &pod("other")).await;

    let owner = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "owner"},
    });
    let maps = format!("/api/v1/namespaces/{home}/configmaps");
    let owner = send(&client, Method::POST, &maps, &owner).await;
    let mut owned = pod("owned");
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }]);
    send(&client, Method::POST, &pods, &owned).await;
    until(&client, &format!("{pods}/owned"), is_ready).await;

    let acts = cluster.pods().unwrap();
    acts.crash(&home, "owned", Crash::default()).await;
    let restarted = |pod: Option<&Value>| {
        let count = pod.and_then(|pod| pod.pointer("/status/containerStatuses/0/restartCount"));
        count == Some(&json!(1))
    };
    until(&client, &format!("{pods}/owned"), restarted).await;
    assert_eq!(acts.running().await.len(), 1);

    let owner = format!("{maps}/owner");
    send(&client, Method::DELETE, &owner, &json!({})).await;
    until(&client, &format!("{pods}/owned"), |pod| pod.is_none()).await;

    let other = find(&client, &format!("{elsewhere}/other")).await.unwrap();
    assert_eq!(other["status"]["phase"], "Pending");
    assert!(other["spec"]["nodeName"].is_null(), "{other}");
    let home = format!("/api/v1/namespaces/{home}");
    send(&client, Method::DELETE, &home, &json!({})).await;
    until(&client, &home, |namespace| namespace.is_none()).await;
    cluster.stop().await.unwrap();
    plane.stop().await;
}

#[tokio::test]
async fn actors_do_not_start_in_a_cluster_with_nodes() {
    let plane = bare().await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}});
    send(&plane.client(), Method::POST, "/api/v1/nodes", &node).await;
    let cluster = connect(&plane).await;
    assert_eq!(cluster.pods().unwrap_err(), NoActors);
    assert_eq!(cluster.nodes().unwrap_err(), NoActors);
    let nodes = find(&plane.client(), "/api/v1/nodes").await.unwrap();
    assert_eq!(nodes["items"].as_array().unwrap().len(), 1);
    cluster.stop().await.unwrap();
    plane.stop().await;
}

#[tokio::test]
async fn broken_watches_are_resumed() {
    let plane = bare().await;
    let cluster = connect(&plane).await;
    let client = cluster.client();
    let home = cluster.create_namespace("home").await.unwrap();
    // All connections break, and the watches' window is lost.
    plane.server().restart(Restart::default());
    let claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let claims = format!("/api/v1/namespaces/{home}/persistentvolumeclaims");
    send(&client, Method::POST, &claims, &claim).await;
    let is_bound =
        |claim: Option<&Value>| claim.is_some_and(|claim| claim["status"]["phase"] == "Bound");
    until(&client, &format!("{claims}/data"), is_bound).await;
    cluster.stop().await.unwrap();
    plane.stop().await;
}
