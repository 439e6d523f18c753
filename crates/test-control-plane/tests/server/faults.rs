//! Fault rules and the audit log.

use std::time::Duration;

use crate::support::Plane;
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::audit::AuditEntry;
use kube_test_control_plane::faults::{FaultAction, RequestMatcher};
use kube_test_control_plane::route::Verb;
use kube_test_control_plane::status::ApiError;
use serde_json::json;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn faults_strike_as_often_as_they_should() {
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
    faults.inject_after(creates(), 1, 1, FaultAction::Respond(error));
    assert_eq!(
        (post("a").await, post("b").await, post("b").await),
        (201, 503, 201)
    );

    faults.inject(creates(), 1, FaultAction::DropBeforeCommit);
    assert_eq!((post("c").await, post("c").await), (0, 201));

    faults.inject(creates(), 1, FaultAction::CommitThenDrop);
    assert_eq!((post("d").await, post("d").await), (0, 409));

    faults.inject(creates(), 1, FaultAction::Delay(Duration::from_secs(7)));
    let before = tokio::time::Instant::now();
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
async fn the_audit_log_tells_who_did_what() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane
        .create(MAPS, &json!({"metadata": {"name": "a"}}))
        .await;
    plane.code(&format!("{MAPS}/nope")).await;
    let entries = plane.0.server().audit().entries();
    let lines: Vec<String> = entries.iter().map(AuditEntry::summary).collect();
    assert_eq!(
        lines,
        [
            "create configmaps default/a 201",
            "get configmaps default/nope 404"
        ]
    );
    assert_eq!(entries[0].user_agent, "test");
    assert_eq!(entries[0].body_value()["metadata"]["name"], "a");
    let writes = plane.0.server().audit().matching(AuditEntry::is_write);
    assert_eq!(writes.len(), 1);
    plane.stop().await;
}
