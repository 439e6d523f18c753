//! Restarts, outages and clocks.

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;
use jiff::SignedDuration;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::faults::RequestMatcher;
use kube_test_control_plane::restart::Restart;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{MAPS, WatchReader, create};

async fn code(plane: &TestControlPlane, path: &str) -> u16 {
    let server = plane.server();
    let (code, _) = server
        .call_json(Method::GET, path, "test", &Value::Null)
        .await;
    code
}

#[tokio::test(start_paused = true)]
async fn restart_breaks_watches_and_keeps_objects() {
    let plane = TestControlPlane::builder().start().await;
    create(&plane, "a").await;
    let before = plane.server().store().revision();
    let mut watch = WatchReader::open(&plane).await;
    create(&plane, "b").await;
    assert_eq!(watch.next().await, "ADDED b");
    plane.server().restart(Restart::default());
    assert_eq!(watch.take(2).await, ["broken", "end"]);
    assert_eq!(code(&plane, &format!("{MAPS}/a")).await, 200);
    let mut old = WatchReader::open_with(&plane, &format!("resourceVersion={before}")).await;
    assert_eq!(old.take(2).await, ["ERROR Expired", "end"]);
    let mut new = WatchReader::open(&plane).await;
    create(&plane, "c").await;
    assert_eq!(new.next().await, "ADDED c");

    let middle = plane.server().store().revision() - 1;
    let restart = Restart::default().keep_events(true);
    plane.server().restart(restart);
    let mut kept = WatchReader::open_with(&plane, &format!("resourceVersion={middle}")).await;
    assert_eq!(kept.next().await, "ADDED c");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn connections_are_refused_for_a_while() {
    let plane = TestControlPlane::builder().start().await;
    let restart = Restart::default().down_for(Duration::from_secs(20));
    plane.server().restart(restart);
    assert_eq!(code(&plane, MAPS).await, 0);
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert!(plane.server().faults().outage().is_on());
    assert_eq!(code(&plane, MAPS).await, 0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(code(&plane, MAPS).await, 200);
    let outage = plane.server().faults().outage();
    outage.begin();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(code(&plane, MAPS).await, 0);
    outage.end();
    assert_eq!(code(&plane, MAPS).await, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn request_in_flight_is_lost() {
    let plane = TestControlPlane::builder().start().await;
    let gate = plane.server().faults().gate(RequestMatcher::any());
    let server = plane.service();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let body = json!({"metadata": {"name": "a"}});
        server.call_json(Method::POST, MAPS, "test", &body).await.0
    });
    gate.arrived(1).await;
    plane.server().faults().outage().break_connections();
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 0);
    assert!(gate.waiting().is_empty());
    plane.stop().await;
}

#[tokio::test]
async fn port_refuses_connections_during_an_outage() {
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let plane = TestControlPlane::builder().listen(address).start().await;
    let url = plane.url().unwrap();
    let address = url.strip_prefix("https://").unwrap();
    let mut open = TcpStream::connect(address).await.unwrap();
    plane.server().faults().outage().begin();
    assert_eq!(open.read(&mut [0; 8]).await.unwrap_or(0), 0);
    // One may arrive before the port closes.
    let refused = loop {
        match TcpStream::connect(address).await {
            Err(err) => break err,
            Ok(mut stream) => assert_eq!(stream.read(&mut [0; 8]).await.unwrap_or(0), 0),
        }
    };
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    plane.server().faults().outage().end();
    // The port is the same afterwards.
    while TcpStream::connect(address).await.is_err() {
        tokio::task::yield_now().await;
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn server_clock_can_be_offset() {
    let plane = TestControlPlane::builder().start().await;
    let server = plane.server();
    let before = server.clock().now();
    server.set_clock_ahead(SignedDuration::from_mins(-2));
    assert_eq!(server.clock().now(), before - SignedDuration::from_mins(2));
    create(&plane, "a").await;
    let (_, map) = server
        .call_json(Method::GET, &format!("{MAPS}/a"), "test", &Value::Null)
        .await;
    let created = map["metadata"]["creationTimestamp"].as_str().unwrap();
    assert_eq!(created, "2025-12-31T23:58:00Z");
    plane.stop().await;
}
