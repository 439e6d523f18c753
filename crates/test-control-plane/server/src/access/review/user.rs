//! `SelfSubjectReview`: the authenticated user.

use kube_test_control_plane_store::clock::Clock;
use serde_json::{Value, json};

use crate::auth::identity::Identity;
use crate::state::now_text;

/// Returns the authenticated user.
pub(super) fn review_user(clock: &dyn Clock, user: &Identity) -> Value {
    let metadata = json!({"creationTimestamp": now_text(clock)});
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": metadata,
        "status": {"userInfo": user.to_user_info()},
    })
}
