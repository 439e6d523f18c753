//! Reviews of users, tokens and access. They are answered directly and never stored.

mod access;
mod rules;
mod token;
mod user;

use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use crate::auth::identity::Identity;
use crate::route::ResourceRequest;
use crate::server::ApiServer;

impl ApiServer {
    /// Evaluates a review and returns the response body.
    ///
    /// # Errors
    ///
    /// 400 and 422 for invalid reviews.
    pub(crate) fn review(&self, request: &ResourceRequest, draft: Draft) -> ApiResult<Value> {
        let admin = Identity::admin();
        let user = request.user.as_deref().unwrap_or(&admin);
        match &*request.kind.kind {
            "LocalSubjectAccessReview" => self.review_local_access(&request.namespace, draft),
            "SelfSubjectAccessReview" => self.review_own_access(user, draft),
            "SelfSubjectReview" => Ok(self.review_user(user)),
            "SelfSubjectRulesReview" => self.review_rules(user, &draft),
            "SubjectAccessReview" => self.review_access(draft),
            "TokenReview" => self.review_token(draft),
            _ => Err(ApiError::method_not_allowed()),
        }
    }
}

/// Returns a response without the request's spec.
fn answer(kind: &str, group: &str, metadata: &Value) -> Value {
    json!({"kind": kind, "apiVersion": format!("{group}/v1"), "metadata": metadata})
}
