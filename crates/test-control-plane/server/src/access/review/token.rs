//! `TokenReview`: the user of a token.

use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use crate::access::authenticate::token_user;
use crate::auth::service_account::ISSUER;
use crate::state::Access;

/// Returns the user of a token that is valid for one of the audiences, by default this server.
///
/// # Errors
///
/// 400 without a token.
pub(super) fn review_token(access: &Access, mut draft: Draft) -> ApiResult<Value> {
    let token = draft.text("/spec/token").unwrap_or_default();
    if token.is_empty() {
        let why = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(why));
    }
    let named = draft.value.pointer("/spec/audiences");
    let named = named.and_then(Value::as_array).into_iter().flatten();
    let mut audiences: Vec<&str> = named.filter_map(Value::as_str).collect();
    if audiences.is_empty() {
        audiences.push(ISSUER);
    }
    let status = match token_user(access, token, &audiences) {
        Ok(shown) => json!({
            "authenticated": true,
            "user": shown.identity.to_user_info(),
            "audiences": shown.audiences,
        }),
        Err(why) => json!({"user": {}, "error": match why {
            Some(why) => format!("[invalid bearer token, {why}]"),
            None => "invalid bearer token".to_owned(),
        }}),
    };
    draft.value["status"] = status;
    Ok(draft.value)
}
