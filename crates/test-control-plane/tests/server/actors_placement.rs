//! Placement of pods by node capacity and by assigned pods.

use crate::support::{Plane, eventually, pod};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{KubeletConfig, NodeConfig, NodeTaint, NodesConfig};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const ZONE: &str = "topology.kubernetes.io/zone";

async fn plane(nodes: NodesConfig) -> Plane {
    let builder = TestControlPlane::builder()
        .kubelet(KubeletConfig::default())
        .configure_actors(|actors| actors.nodes = nodes);
    Plane::new(builder.start().await)
}

/// Creates a pod. Returns its node, or the reason why it has none.
async fn place(plane: &Plane, name: &str, spec: Value) -> String {
    place_in(plane, "default", name, spec).await
}

async fn place_in(plane: &Plane, namespace: &str, name: &str, spec: Value) -> String {
    let mut body = pod(name);
    for (member, value) in spec.as_object().unwrap() {
        body["spec"][member] = value.clone();
    }
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    plane.create(&pods, &body).await;
    let path = format!("{pods}/{name}");
    let outcome = || async {
        let pod = plane.get(&path).await;
        let message = &pod["status"]["conditions"][0]["message"];
        let node = &pod["spec"]["nodeName"];
        let text = node.as_str().or(message.as_str());
        text.unwrap_or_default().to_owned()
    };
    eventually(|| async { !outcome().await.is_empty() }).await;
    outcome().await
}

fn container(more: &Value) -> Value {
    let mut container = json!({"name": "c", "image": "img:1"});
    for (member, value) in more.as_object().unwrap() {
        container[member] = value.clone();
    }
    json!({"containers": [container]})
}

#[track_caller]
fn refused(outcome: &str, reason: &str) {
    assert!(outcome.contains(reason), "{outcome}");
}

#[tokio::test(start_paused = true)]
async fn nodes_have_their_configured_resources() {
    let gpu = NodeConfig::new("gpu")
        .labels([("disk", "ssd")])
        .taints([NodeTaint::default()
            .key("dedicated")
            .effect("PreferNoSchedule")])
        .allocatable([("example.com/gpu", "1")]);
    let nodes = vec![NodeConfig::new("plain"), gpu];
    let plane = plane(NodesConfig::default().nodes(nodes)).await;
    let wants_gpu = || container(&json!({"resources": {"limits": {"example.com/gpu": "1"}}}));
    assert_eq!(place(&plane, "a", wants_gpu()).await, "gpu");
    let why = place(&plane, "b", wants_gpu()).await;
    refused(&why, "2 Insufficient example.com/gpu");
    assert_eq!(place(&plane, "c", json!({})).await, "plain");
    let ssd = json!({"nodeSelector": {"disk": "ssd"}});
    assert_eq!(place(&plane, "d", ssd).await, "gpu");
    // Every node has a distinct address, including later ones.
    plane.0.nodes().delete("plain").await.unwrap();
    for name in ["x", "y"] {
        plane.0.nodes().add(name, 10).await.unwrap();
    }
    let list = plane.get("/api/v1/nodes").await;
    let nodes = list["items"].as_array().unwrap();
    let mut addresses: Vec<&Value> = nodes
        .iter()
        .map(|node| &node["status"]["addresses"][0]["address"])
        .collect();
    addresses.sort_by_key(ToString::to_string);
    addresses.dedup();
    assert_eq!(addresses.len(), 3);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn host_port_is_used_once_per_node() {
    let plane = plane(NodesConfig::numbered(2)).await;
    let port = |protocol: &str| {
        container(&json!({"ports": [
            {"containerPort": 80, "hostPort": 80, "protocol": protocol},
        ]}))
    };
    assert_eq!(place(&plane, "a", port("TCP")).await, "node-0");
    assert_eq!(place(&plane, "b", port("TCP")).await, "node-1");
    let why = place(&plane, "c", port("TCP")).await;
    refused(
        &why,
        "2 node(s) didn't have free ports for the requested pod ports",
    );
    assert_eq!(place(&plane, "d", port("UDP")).await, "node-0");
    plane.0.pods().delete("default", "b", None).await.unwrap();
    let c = format!("{PODS}/c");
    eventually(|| async { plane.get(&c).await["spec"]["nodeName"] == "node-1" }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pods_follow_their_spread_constraints() {
    let nodes = NodesConfig::numbered(3).zones(&["a", "b"]);
    let plane = plane(nodes.allocatable("pods", "2")).await;
    let spread = || {
        json!({"topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }]})
    };
    // Zone b has only node-1, with room for two pods.
    for (name, node) in [
        ("p-0", "node-0"),
        ("p-1", "node-1"),
        ("p-2", "node-2"),
        ("p-3", "node-1"),
        ("p-4", "node-0"),
    ] {
        assert_eq!(place(&plane, name, spread()).await, node, "{name}");
    }
    let why = place(&plane, "p-5", spread()).await;
    let reason = "1 node(s) didn't match pod topology spread constraints";
    refused(&why, reason);
    refused(&why, "2 Too many pods");
    let label = json!({"metadata": {"labels": {ZONE: null}}});
    plane
        .call(Method::PATCH, "/api/v1/nodes/node-2", &label)
        .await;
    let mut lone = spread();
    lone["nodeSelector"] = json!({"kubernetes.io/hostname": "node-2"});
    plane.0.pods().delete("default", "p-2", None).await.unwrap();
    let why = place(&plane, "p-6", lone).await;
    refused(&why, "(missing required label)");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pods_follow_their_affinity() {
    let plane = plane(NodesConfig::numbered(4).zones(&["a", "b"])).await;
    let near = |app: &str| {
        json!({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "labelSelector": {"matchLabels": {"app": app}},
                "topologyKey": ZONE,
            }],
        }}})
    };
    let why = place(&plane, "lost", near("nobody")).await;
    refused(&why, "4 node(s) didn't match pod affinity rules");
    // The first pod of a group with mutual affinity may go anywhere.
    assert_eq!(place(&plane, "first", near("x")).await, "node-0");
    assert_eq!(place(&plane, "second", near("x")).await, "node-2");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn terms_select_namespaces_by_labels() {
    let plane = plane(NodesConfig::numbered(1)).await;
    for (name, team) in [("one", "a"), ("two", "b")] {
        let namespace = json!({"metadata": {"name": name, "labels": {"team": team}}});
        plane.create("/api/v1/namespaces", &namespace).await;
    }
    assert_eq!(place_in(&plane, "one", "p", json!({})).await, "node-0");
    let away = |selector: Value| {
        json!({"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "labelSelector": {"matchLabels": {"app": "x"}},
                "namespaceSelector": selector,
                "topologyKey": "kubernetes.io/hostname",
            }],
        }}})
    };
    let b = away(json!({"matchLabels": {"team": "b"}}));
    assert_eq!(place(&plane, "b", b).await, "node-0");
    for (name, selector) in [
        ("a", json!({"matchLabels": {"team": "a"}})),
        ("every", json!({})),
    ] {
        let why = place(&plane, name, away(selector)).await;
        refused(&why, "1 node(s) didn't match pod anti-affinity rules");
    }
    plane.stop().await;
}
