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

#[tokio::test(start_paused = true)]
async fn addresses_come_from_the_configured_range() {
    let range = "10.0.0.0/29".parse().unwrap();
    let builder = TestControlPlane::builder().service_cluster_ip_range(range);
    let plane = Plane::new(builder.start().await);
    let server = plane.get(&format!("{SERVICES}/kubernetes")).await;
    assert_eq!(server["spec"]["clusterIP"], "10.0.0.1");
    let outside = service("a", &json!({"clusterIP": "10.0.0.7"}));
    let refusal = async |query: &str| {
        let path = format!("{SERVICES}{query}");
        let (code, answer) = plane.call(Method::POST, &path, &outside).await;
        assert_eq!(code, 422, "{answer}");
        answer["message"].as_str().unwrap().to_owned()
    };
    let why = "the provided network does not match the current range";
    assert!(refusal("").await.ends_with(why));
    let why = "the provided IP (10.0.0.7) is not in the valid range. The range of valid IPs is \
               10.0.0.0/29";
    assert!(refusal("?dryRun=All").await.ends_with(why));
    for i in 0..5 {
        let object = service(&format!("s{i}"), &json!({}));
        plane.create(SERVICES, &object).await;
    }
    let (code, answer) = plane
        .call(Method::POST, SERVICES, &service("full", &json!({})))
        .await;
    let why = "failed to allocate a serviceIP for Service \"full\": range is full";
    assert_eq!(code, 500);
    assert_eq!(answer["message"], format!("Internal error occurred: {why}"));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn protocols_of_one_port_share_a_node_port() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let port = |name: &str, number: u16, protocol: &str| json!({"name": name, "port": number, "protocol": protocol});
    let ports = [
        port("a", 53, "UDP"),
        port("b", 53, "TCP"),
        port("c", 54, "TCP"),
    ];
    let spec = json!({"type": "NodePort", "ports": ports});
    let numbers = |service: &Value| -> Vec<i64> {
        let ports = service["spec"]["ports"].as_array().unwrap().iter();
        ports
            .map(|port| port["nodePort"].as_i64().unwrap())
            .collect()
    };
    let made = numbers(&plane.create(SERVICES, &service("a", &spec)).await);
    assert!(made[0] == made[1] && made[0] != made[2], "{made:?}");
    // A dry run makes them up.
    let dry_run = format!("{SERVICES}?dryRun=All");
    let shown = plane.create(&dry_run, &service("b", &spec)).await;
    assert_eq!(numbers(&shown), [32_769, 32_769, 32_770]);
    assert_eq!(shown["spec"]["clusterIP"], "10.96.0.0");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn update_rejects_a_repeated_node_port() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let made = plane.create(SERVICES, &service("a", &json!({}))).await;
    let mut changed = made.clone();
    let port = |name: &str| json!({"name": name, "port": 80, "protocol": "TCP", "nodePort": 30001});
    changed["spec"]["type"] = json!("NodePort");
    changed["spec"]["ports"] = json!([port("a"), port("b")]);
    let path = format!("{SERVICES}/a");
    let (code, answer) = plane.call(Method::PUT, &path, &changed).await;
    let why = json!("duplicate nodePort: {TCP 30001}");
    assert_eq!((code, &answer["message"]), (500, &why));
    plane.stop().await;
}
