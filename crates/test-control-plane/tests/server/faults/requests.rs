//! Rules for requests.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::audit::AuditEntry;
use kube_test_control_plane::faults::{
    Delay, FaultAction, FaultError, FaultPlan, FaultRule, RequestMatcher, Schedule,
};
use kube_test_control_plane::reply::ApiError;
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::Plane;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn schedules_limit_faults() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let faults = plane.0.server().faults();
    let creates = || {
        RequestMatcher::any()
            .verb(Verb::Create)
            .resource("configmaps")
    };
    let body = |name: &str| json!({"metadata": {"name": name}});
    let post = async |name: &str| plane.call(Method::POST, MAPS, &body(name)).await.0;

    let error = ApiError::new(503, "ServiceUnavailable", "try again");
    faults.inject_after(creates(), 1, 1, FaultAction::respond(error));
    assert_eq!(
        (post("a").await, post("b").await, post("b").await),
        (201, 503, 201)
    );

    faults.inject(creates(), 1, FaultAction::DropBeforeCommit);
    assert_eq!((post("c").await, post("c").await), (0, 201));

    faults.inject(creates(), 1, FaultAction::CommitThenDrop);
    assert_eq!((post("d").await, post("d").await), (0, 409));

    faults.inject(
        creates(),
        1,
        FaultAction::Delay(Duration::from_secs(7).into()),
    );
    let before = Instant::now();
    assert_eq!(post("e").await, 201);
    assert_eq!(before.elapsed(), Duration::from_secs(7));

    faults.inject_always(
        creates().namespace("elsewhere"),
        FaultAction::DropBeforeCommit,
    );
    assert_eq!(post("f").await, 201);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropped_connection_loses_any_response() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let faults = plane.0.server().faults();
    faults.inject(RequestMatcher::any(), 1, FaultAction::CommitThenDrop);
    let missing = format!("{MAPS}/missing");
    assert_eq!(plane.code(&missing).await, 0);
    let entry = plane.0.server().audit().entries().remove(0);
    assert_eq!((entry.code, entry.fault.as_str()), (404, "commitThenDrop"));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn injected_errors_match_the_servers() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let faults = plane.0.server().faults();
    let path = "/apis/apps/v1/namespaces/default/statefulsets/web";
    let get = async |error: FaultError| {
        faults.inject(RequestMatcher::any(), 1, FaultAction::Respond(error));
        let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
        let reply = plane.0.server().serve(request).await.unwrap();
        let (parts, body) = reply.into_parts();
        let text = body.collect().await.unwrap().to_bytes();
        let retry = parts.headers.get("retry-after").cloned();
        let status = serde_json::from_slice::<Value>(&text);
        (
            parts.status.as_u16(),
            retry.map(|r| r.to_str().unwrap().to_owned()),
            status.unwrap_or_else(|_| json!(String::from_utf8_lossy(&text))),
        )
    };
    let (code, _, status) = get(FaultError::Conflict).await;
    assert_eq!(code, 409);
    assert_eq!(
        status,
        ApiError::modified(
            kube_test_control_plane::kinds::by_resource("apps", "v1", "statefulsets").unwrap(),
            "web"
        )
        .to_value()
    );
    let (code, retry, status) = get(FaultError::TooManyRequests {
        retry_after_seconds: 3,
    })
    .await;
    assert_eq!((code, retry.as_deref()), (429, Some("3")));
    assert_eq!(status["reason"], "TooManyRequests");
    let (code, retry, text) = get(FaultError::Overloaded {
        retry_after_seconds: 1,
    })
    .await;
    assert_eq!((code, retry.as_deref()), (429, Some("1")));
    assert_eq!(text, "Too many requests, please try again later.\n");
    let (code, _, status) = get(FaultError::Invalid {
        field: "spec".to_owned(),
        message: "no".to_owned(),
    })
    .await;
    assert_eq!(code, 422);
    assert_eq!(status["details"]["kind"], "StatefulSet");
    for (error, reason) in [
        (FaultError::Expired, "Expired"),
        (FaultError::ServiceUnavailable, "ServiceUnavailable"),
        (FaultError::Timeout, "Timeout"),
        (FaultError::AlreadyExists, "AlreadyExists"),
        (FaultError::NotFound, "NotFound"),
    ] {
        let wanted = error.code();
        let (code, _, status) = get(error).await;
        assert_eq!(
            (code, status["code"].as_u64()),
            (wanted, Some(wanted.into()))
        );
        assert_eq!(status["reason"], reason);
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn rules_match_by_client_query_and_body() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let faults = plane.0.server().faults();
    let send = async |agent: &str, path: &str, body: Value| {
        let method = if body.is_null() {
            Method::GET
        } else {
            Method::POST
        };
        plane
            .0
            .server()
            .call_json(method, path, agent, &body)
            .await
            .0
    };
    let refuse = || FaultAction::Respond(FaultError::ServiceUnavailable);
    let labelled = json!({"metadata": {"name": "a", "labels": {"tier": "x"}}});
    let plain = json!({"metadata": {"name": "b"}});

    faults.inject_always(RequestMatcher::any().body_label("tier", "x"), refuse());
    assert_eq!(send("t", MAPS, labelled.clone()).await, 503);
    assert_eq!(send("t", MAPS, plain).await, 201);
    faults.clear();

    faults.inject_always(RequestMatcher::any().query("limit", "5"), refuse());
    assert_eq!(
        send("t", &format!("{MAPS}?limit=5"), Value::Null).await,
        503
    );
    assert_eq!(
        send("t", &format!("{MAPS}?limit=6"), Value::Null).await,
        200
    );
    faults.clear();

    faults.inject_always(RequestMatcher::any().user_agent("manager"), refuse());
    assert_eq!(send("manager/v1", MAPS, Value::Null).await, 503);
    assert_eq!(send("kubectl", MAPS, Value::Null).await, 200);
    faults.clear();

    faults.inject_always(RequestMatcher::any(), refuse());
    assert_eq!(send("t", "/version", Value::Null).await, 200);
    faults.inject_always(RequestMatcher::any().path("/version"), refuse());
    assert_eq!(send("t", "/version", Value::Null).await, 503);
    let removed = faults.inject_always(RequestMatcher::any().user("nobody"), refuse());
    assert!(faults.remove(removed));
    assert!(!faults.remove(removed));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn delays_add_up_before_the_final_action() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let faults = plane.0.server().faults();
    let any = RequestMatcher::any;
    let second = Duration::from_secs(1);
    faults.inject_always(any(), FaultAction::Delay(second.into()));
    let jitter = Delay::between(second, 2 * second);
    let rule = faults.add(FaultRule::new(any(), FaultAction::DelayAnswer(jitter)).named("late"));
    let begin = Instant::now();
    assert_eq!(plane.code(MAPS).await, 200);
    let took = begin.elapsed();
    assert!(took >= 2 * second && took <= 3 * second, "{took:?}");
    assert_eq!(faults.hits(rule), 1);
    let entry = plane.0.server().audit().entries().remove(0);
    assert_eq!(entry.fault, "delay,late");

    faults.clear();
    let slow = FaultAction::SlowBody {
        piece_bytes: 10,
        pause: second.into(),
    };
    faults.inject(any(), 1, slow);
    let begin = Instant::now();
    let list = plane.get(MAPS).await;
    assert_eq!(list["kind"], "ConfigMapList");
    assert!(begin.elapsed() >= 5 * second);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn plan_affects_the_same_requests_each_time() {
    let text = r#"{
        "seed": 11,
        "requests": [{
            "name": "rejected",
            "match": {"verbs": ["create"], "resources": ["configmaps"]},
            "when": {"probability": 0.5, "until": "1h"},
            "action": {"respond": "serviceUnavailable"}
        }]
    }"#;
    let plan = FaultPlan::from_json(text).unwrap();
    assert_eq!(FaultPlan::from_json(&plan.to_json()).unwrap(), plan);
    let run = async |plan: &FaultPlan| {
        let plane = Plane::new(TestControlPlane::builder().start().await);
        plane.0.server().faults().load(plan);
        for i in 0..20 {
            let body = json!({"metadata": {"name": format!("m-{i}")}});
            plane.call(Method::POST, MAPS, &body).await;
        }
        let entries = plane.0.server().audit().entries();
        plane.stop().await;
        entries.iter().map(AuditEntry::summary).collect::<Vec<_>>()
    };
    let first = run(&plan).await;
    assert_eq!(first, run(&plan).await);
    let refused = first.iter().filter(|line| line.ends_with("503")).count();
    assert!((1..20).contains(&refused), "{first:?}");

    for (text, wanted) in [
        (r#"{"request": []}"#, "request"),
        (r#"{"requests": [{"action": "explode"}]}"#, "explode"),
        (
            r#"{"requests": [{"action": {"delay": "5"}}]}"#,
            "\"5\" is not a duration",
        ),
        (
            r#"{"requests": [{"action": "commitThenDrop", "when": {"until": "x"}}]}"#,
            "\"x\" is not a duration",
        ),
    ] {
        let error = FaultPlan::from_json(text).unwrap_err().to_string();
        assert!(error.starts_with("reading a fault plan: "), "{error}");
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn schedules_are_values() {
    let schedule = Schedule::times(3).skip(1).every(2).probability(0.5);
    assert_eq!(
        serde_json::to_value(schedule).unwrap(),
        json!({"skip": 1, "every": 2, "probability": 0.5, "limit": 3})
    );
}
