//! Requests that exceed their client's timeout.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::faults::{FaultAction, RequestMatcher};
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::MAPS;
use crate::support::Plane;

/// Returns code, media type and body of the response to a GET.
async fn get(plane: &Plane, path: &str) -> (u16, String, Value) {
    let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
    let reply = plane.0.server().serve(request).await.unwrap();
    let code = reply.status().as_u16();
    let media_type = reply.headers()["content-type"].to_str().unwrap().to_owned();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    (code, media_type, serde_json::from_slice(&body).unwrap())
}

async fn slow_plane(seconds: u64) -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let delay = FaultAction::Delay(Duration::from_secs(seconds).into());
    plane
        .0
        .server()
        .faults()
        .inject_always(RequestMatcher::any(), delay);
    plane
}

#[tokio::test(start_paused = true)]
async fn request_ends_at_the_clients_timeout() {
    let plane = slow_plane(300).await;
    for (timeout, waited) in [("2s", 2), ("1h", 60)] {
        let begun = Instant::now();
        let (code, media_type, status) = get(&plane, &format!("{MAPS}?timeout={timeout}")).await;
        assert_eq!(begun.elapsed().as_secs(), waited, "{timeout}");
        assert_eq!(
            (code, media_type.as_str()),
            (504, "text/plain; charset=utf-8")
        );
        let message = "Timeout: request did not complete within the allotted timeout";
        assert_eq!(
            status,
            json!({
                "metadata": {},
                "status": "Failure",
                "message": message,
                "reason": "Timeout",
                "details": {},
                "code": 504,
            })
        );
        let entries = plane.0.server().audit().entries();
        assert_eq!(entries.last().unwrap().code, 504);
    }
    for timeout in ["", "0s"] {
        let begun = Instant::now();
        let (code, ..) = get(&plane, &format!("{MAPS}?timeout={timeout}")).await;
        assert_eq!((code, begun.elapsed().as_secs()), (200, 300), "{timeout}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn late_response_keeps_its_code_in_the_log() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let faults = plane.0.server().faults();
    let late = FaultAction::DelayAnswer(Duration::from_secs(9).into());
    faults.inject_always(RequestMatcher::any().verb(Verb::Create), late);
    let map = json!({"metadata": {"name": "a"}});
    let (code, _) = plane
        .call(Method::POST, &format!("{MAPS}?timeout=3s"), &map)
        .await;
    assert_eq!(code, 504);
    let created = plane
        .0
        .server()
        .audit()
        .matching(|entry| entry.verb == Verb::Create);
    let codes: Vec<u16> = created.iter().map(|entry| entry.code).collect();
    assert_eq!(codes, [201]);
    assert_eq!(plane.code(&format!("{MAPS}/a")).await, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watch_has_a_separate_timeout() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let path = format!("{MAPS}?watch=1&timeout=1s&timeoutSeconds=30");
    let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
    let begun = Instant::now();
    let reply = plane.0.server().serve(request).await.unwrap();
    assert_eq!(reply.status(), 200);
    reply.into_body().collect().await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 30);
    plane.stop().await;
}
