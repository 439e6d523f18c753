//! Allocation of service addresses and ports.

use std::collections::BTreeSet;

use crate::support::Plane;
use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, spec: &Value) -> Value {
    let mut service = json!({
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
    });
    for (member, value) in spec.as_object().unwrap() {
        service["spec"][member] = value.clone();
    }
    service
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_for_one_address_have_one_winner() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    for round in 0..50 {
        let (address, port) = (format!("10.96.0.{}", 20 + round), 31_000 + round);
        let mut tasks = JoinSet::new();
        for i in 0..4 {
            let server = plane.0.server().clone();
            let spec = json!({
                "type": "NodePort", "clusterIP": address,
                "ports": [{"port": 80, "nodePort": port}],
            });
            let object = service(&format!("s{round}-{i}"), &spec);
            tasks.spawn(async move {
                let answer = server.call_json(Method::POST, SERVICES, "test", &object);
                answer.await.0
            });
        }
        let mut codes = tasks.join_all().await;
        codes.sort_unstable();
        assert_eq!(codes, [201, 422, 422, 422], "round {round}");
    }
    let list = plane.get(SERVICES).await;
    let services = list["items"].as_array().unwrap();
    let addresses: BTreeSet<&str> = services
        .iter()
        .map(|service| service["spec"]["clusterIP"].as_str().unwrap())
        .collect();
    assert_eq!(addresses.len(), services.len());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deleted_service_frees_its_address() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let spec = json!({"clusterIP": "10.96.0.200"});
    plane.create(SERVICES, &service("a", &spec)).await;
    let (code, answer) = plane
        .call(Method::POST, SERVICES, &service("b", &spec))
        .await;
    assert_eq!(code, 422, "{answer}");
    let path = format!("{SERVICES}/a");
    plane.call(Method::DELETE, &path, &Value::Null).await;
    plane.create(SERVICES, &service("b", &spec)).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn full_range_of_node_ports_is_an_error() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let ports = |numbers: std::ops::Range<u16>| -> Value {
        let port = |n| json!({"name": format!("p{n}"), "port": n, "protocol": "TCP"});
        numbers.map(port).collect()
    };
    let spec = json!({"type": "NodePort", "ports": ports(1..2768)});
    let first = plane.create(SERVICES, &service("first", &spec)).await;
    let given = first["spec"]["ports"].as_array().unwrap();
    let given: BTreeSet<i64> = given
        .iter()
        .filter_map(|p| p["nodePort"].as_i64())
        .collect();
    assert_eq!(given.len(), 2767);
    // One port is left.
    let two = json!({"type": "NodePort", "ports": ports(1..3)});
    let (code, answer) = plane
        .call(Method::POST, SERVICES, &service("second", &two))
        .await;
    let why = "failed to allocate a nodePort: range is full";
    assert_eq!((code, &answer["reason"]), (500, &json!("InternalError")));
    assert_eq!(answer["message"], format!("Internal error occurred: {why}"));
    assert_eq!(answer["details"], json!({"causes": [{"message": why}]}));
    let one = json!({"type": "NodePort", "ports": ports(1..2)});
    let second = plane.create(SERVICES, &service("second", &one)).await;
    let last = second["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
    assert!(!given.contains(&last), "{last}");
    // A deletion frees its ports.
    let path = format!("{SERVICES}/first");
    plane.call(Method::DELETE, &path, &Value::Null).await;
    plane.create(SERVICES, &service("third", &two)).await;
    plane.stop().await;
}
