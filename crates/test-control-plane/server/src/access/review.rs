//! Reviews of users, tokens and access. They get a response directly and are never stored.

mod access;
mod rules;
mod token;
mod user;

use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::Value;

use crate::auth::identity::Identity;
use crate::route::ResourceRequest;
use crate::state::Access;
use access::{review_access, review_local_access, review_own_access};
use rules::review_rules;
use token::review_token;
use user::review_user;

/// Evaluates a review and returns the response body.
///
/// # Errors
///
/// 400 and 422 for invalid reviews.
pub(crate) fn review(access: &Access, request: &ResourceRequest, draft: Draft) -> ApiResult<Value> {
    let admin = Identity::admin();
    let user = request.user.as_deref().unwrap_or(&admin);
    match &*request.kind.kind {
        "LocalSubjectAccessReview" => review_local_access(access, &request.namespace, draft),
        "SelfSubjectAccessReview" => review_own_access(access, user, draft),
        "SelfSubjectReview" => Ok(review_user(access.reads.clock(), user)),
        "SelfSubjectRulesReview" => review_rules(access, user, &draft),
        "SubjectAccessReview" => review_access(access, draft),
        "TokenReview" => review_token(access, draft),
        _ => Err(ApiError::method_not_allowed()),
    }
}
