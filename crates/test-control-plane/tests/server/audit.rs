//! The audit log.

use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::audit::AuditEntry;
use serde_json::json;

use crate::support::Plane;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

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
