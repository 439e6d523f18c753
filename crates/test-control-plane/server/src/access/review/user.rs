//! `SelfSubjectReview`: the authenticated user.

use serde_json::{Value, json};

use super::answer;
use crate::auth::identity::Identity;
use crate::server::ApiServer;

impl ApiServer {
    /// Returns the authenticated user.
    pub(super) fn review_user(&self, user: &Identity) -> Value {
        let metadata = json!({"creationTimestamp": self.now_text()});
        let mut review = answer("SelfSubjectReview", "authentication.k8s.io", &metadata);
        review["status"] = json!({"userInfo": user.to_user_info()});
        review
    }
}
