//! The endpoint slice controller.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::audit::Settle;
use serde_json::{Value, json};

use crate::support::{Plane, call_patch, pod};

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().all_actors().start().await)
}

async fn settle(plane: &Plane) {
    let quiet = Settle::quiet_for(Duration::from_secs(60));
    plane.0.server().audit().settle(&quiet).await.unwrap();
}

async fn slices(plane: &Plane) -> Vec<Value> {
    let list = plane
        .get(&format!(
            "{SLICES}?labelSelector=kubernetes.io/service-name=web"
        ))
        .await;
    list["items"].as_array().unwrap().clone()
}

fn service(port: &Value) -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"selector": {"app": "x"}, "ports": [{"name": "http", "port": 80, "targetPort": port}]},
    })
}

#[tokio::test(start_paused = true)]
async fn slice_follows_the_pods_of_its_service() {
    let plane = plane().await;
    plane.create(SERVICES, &service(&json!(8080))).await;
    settle(&plane).await;
    let found = slices(&plane).await;
    let [empty] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(
        (&empty["endpoints"], &empty["ports"]),
        (&Value::Null, &Value::Null)
    );
    for name in ["a", "b"] {
        plane.create(PODS, &pod(name)).await;
    }
    settle(&plane).await;
    let found = slices(&plane).await;
    assert_eq!(found.len(), 1);
    let slice = &found[0];
    assert_eq!(slice["metadata"]["name"], empty["metadata"]["name"]);
    assert_eq!(slice["metadata"]["labels"]["tier"], "front");
    assert_eq!(
        slice["ports"],
        json!([{"name": "http", "port": 8080, "protocol": "TCP"}])
    );
    let endpoints = slice["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 2);
    let conditions = json!({"ready": true, "serving": true, "terminating": false});
    assert_eq!(endpoints[0]["conditions"], conditions);
    assert_eq!(endpoints[0]["targetRef"]["name"], "a");
    let found_pod = plane.get(&format!("{PODS}/a")).await;
    assert_eq!(endpoints[0]["addresses"][0], found_pod["status"]["podIP"]);
    let unlabelled = json!({"metadata": {"labels": {"app": "y"}}});
    call_patch(&plane, &format!("{PODS}/a"), &unlabelled).await;
    plane
        .call(Method::DELETE, &format!("{PODS}/b"), &Value::Null)
        .await;
    settle(&plane).await;
    assert_eq!(slices(&plane).await[0]["endpoints"], Value::Null);
    plane
        .call(Method::DELETE, &format!("{SERVICES}/web"), &Value::Null)
        .await;
    settle(&plane).await;
    assert_eq!(slices(&plane).await.len(), 0);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn named_ports_split_the_endpoints() {
    let plane = plane().await;
    for (name, port) in [("a", 8080), ("b", 8081)] {
        let mut pod = pod(name);
        let port = json!({"name": "http", "containerPort": port});
        pod["spec"]["containers"][0]["ports"] = json!([port]);
        plane.create(PODS, &pod).await;
    }
    plane.create(SERVICES, &service(&json!("http"))).await;
    settle(&plane).await;
    let found = slices(&plane).await;
    let mut ports: Vec<&Value> = found
        .iter()
        .map(|slice| &slice["ports"][0]["port"])
        .collect();
    ports.sort_by_key(|port| port.as_i64());
    assert_eq!(ports, [&json!(8080), &json!(8081)]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn large_services_have_several_slices() {
    let plane = plane().await;
    for i in 0..105 {
        plane.create(PODS, &pod(&format!("p{i}"))).await;
    }
    plane.create(SERVICES, &service(&json!(80))).await;
    settle(&plane).await;
    let found = slices(&plane).await;
    let mut counts: Vec<usize> = found
        .iter()
        .map(|slice| slice["endpoints"].as_array().unwrap().len())
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [5, 100]);
    plane.stop().await;
}
