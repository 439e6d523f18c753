//! Replays exchanges recorded from a real API server (`test/vectors/apiserver.json`).
//!
//! Cases that need parts of the server that don't exist yet are listed, each with the part that is
//! missing; a listed case that passes fails the test, so that the list stays true.

use kube_test_control_plane::{ServerConfig, TestControlPlane, UnknownFields};
use serde_json::Value;

/// Cases that don't pass yet.
const OPEN: &[(&str, &str)] = &[
    ("apply-basic", "server-side apply"),
    ("field-manager", "managedFields"),
    (
        "meta-endpoints",
        "kinds of apps/v1 beyond those of stateful sets",
    ),
    ("patch-owner-adopt", "managedFields"),
    (
        "pvc-create",
        "the textual diff in the message about an immutable spec",
    ),
    ("rbac", "authorization by roles"),
];

#[tokio::test(start_paused = true)]
async fn recorded_exchanges_are_answered_alike() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../test/vectors/apiserver.json"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case["case"].as_str().unwrap();
        let config = ServerConfig {
            unknown_fields: UnknownFields::Prune,
            ..ServerConfig::default()
        };
        let plane = TestControlPlane::builder()
            .server_config(config)
            .start()
            .await;
        let result = crate::replay::case(plane.server(), case).await;
        let open = OPEN.iter().any(|(open, _)| *open == name);
        match result {
            Ok(()) if open => wrong.push(format!("{name}: passes now, take it off the list")),
            Err(why) if !open => wrong.push(format!("{name}: {why}")),
            _ => {}
        }
        plane.stop().await;
    }
    assert!(
        wrong.is_empty(),
        "{} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
