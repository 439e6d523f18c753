//! Fault rules for calls of webhooks, and views of policies and webhooks that lag.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::faults::{
    FaultPlan, RequestMatcher, Schedule, View, ViewRule, WebhookAction, WebhookMatcher, WebhookRule,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{MAPS, configure, map, plane, rejected, serve, webhook};
use crate::support::Plane;

const START: &str = "Internal error occurred: failed calling webhook \"hooks.example.com\": failed \
                     to call webhook: ";
const POST: &str = "Post \"https://hooks.default.svc:443/?timeout=10s\": ";

async fn with_webhook() -> (Plane, super::Reviews) {
    let plane = plane().await;
    let reviews = serve(&plane, "hooks", |_| json!({"allowed": true}));
    configure(&plane, "validating", "c", &[webhook("hooks", &json!({}))]).await;
    (plane, reviews)
}

fn once(action: WebhookAction) -> WebhookRule {
    let matcher = WebhookMatcher::any().configuration("c");
    WebhookRule::new(matcher, action).when(Schedule::times(1))
}

#[tokio::test(start_paused = true)]
async fn rules_make_webhooks_hang_fail_and_respond_wrongly() {
    let (plane, reviews) = with_webhook().await;
    let faults = plane.0.server().faults();
    let wrong = WebhookAction::Respond {
        code: 200,
        body: "{}".to_owned(),
    };
    for (action, expected) in [
        (
            WebhookAction::Hang,
            format!("{POST}context deadline exceeded"),
        ),
        (
            WebhookAction::Refuse,
            format!("{POST}dial tcp hooks.default.svc:443: connect: connection refused"),
        ),
        (WebhookAction::Drop, format!("{POST}EOF")),
    ] {
        let id = faults.add_webhook_rule(once(action));
        let found = rejected(&plane, Method::POST, MAPS, &map("x", &json!({})), 500).await;
        assert_eq!(found, format!("{START}{expected}"));
        assert_eq!(faults.hits(id), 1);
    }
    faults.add_webhook_rule(once(wrong));
    let found = rejected(&plane, Method::POST, MAPS, &map("x", &json!({})), 500).await;
    assert_eq!(
        found,
        "Internal error occurred: failed calling webhook \"hooks.example.com\": received invalid \
         webhook response: webhook response was absent"
    );
    assert_eq!(reviews.take().len(), 0, "the webhook itself was not called");
    plane.create(MAPS, &map("x", &json!({}))).await;
    assert_eq!(reviews.take().len(), 1, "the rules are used up");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn late_webhooks_count_until_their_timeout() {
    let (plane, reviews) = with_webhook().await;
    let plan = r#"{"webhooks": [
        {"match": {"webhook": "hooks.example.com"}, "action": {"delay": "4s"}},
        {"match": {"configuration": "other"}, "action": "hang"}
    ]}"#;
    let plan = FaultPlan::from_json(plan).unwrap();
    let faults = plane.0.server().faults();
    let ids = faults.load(&plan);
    let before = Instant::now();
    plane.create(MAPS, &map("x", &json!({}))).await;
    assert_eq!(before.elapsed(), Duration::from_secs(4));
    assert_eq!(reviews.take().len(), 1);
    assert_eq!([faults.hits(ids[0]), faults.hits(ids[1])], [1, 0]);
    assert!(faults.remove(ids[0]));
    let before = Instant::now();
    plane.create(MAPS, &map("y", &json!({}))).await;
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(FaultPlan::from_json(&plan.to_json()).unwrap(), plan);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lagging_servers_apply_earlier_configurations() {
    let plane = plane().await;
    let reviews = serve(&plane, "hooks", |_| json!({"allowed": true}));
    let list = plane.get(MAPS).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    configure(&plane, "validating", "c", &[webhook("hooks", &json!({}))]).await;
    let faults = plane.0.server().faults();
    let matcher = RequestMatcher::any().user_agent("test");
    let id = faults.add_admission_view(ViewRule::new(
        matcher,
        View::FrozenAt(version.parse().unwrap()),
    ));
    plane.create(MAPS, &map("x", &json!({}))).await;
    assert_eq!(
        reviews.take().len(),
        0,
        "this server doesn't know the webhook yet"
    );
    let body = map("y", &json!({}));
    let other = plane.0.server();
    let (code, _) = other.call_json(Method::POST, MAPS, "other", &body).await;
    assert_eq!((code, reviews.take().len()), (201, 1));
    assert!(faults.remove(id));
    let path = format!("{MAPS}/x");
    assert_eq!(plane.call(Method::DELETE, &path, &Value::Null).await.0, 200);
    assert_eq!(reviews.take().len(), 1);
    plane.stop().await;
}
