//! In-process requests with JSON bodies.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use crate::auth::Identity;
use crate::state::ServerState;

/// The content type of server-side apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// Returns the content type of a request that is no apply.
pub(crate) fn content_type(method: &Method) -> &'static str {
    match *method {
        Method::PATCH => "application/strategic-merge-patch+json",
        _ => "application/json",
    }
}

/// Sends a request as a user, by default the administrator, with a JSON body, or none if it is null.
/// Returns the status code and body: 0 and null if a fault dropped the connection.
pub(crate) async fn send(
    state: &ServerState,
    identity: Option<Identity>,
    method: Method,
    (content_type, path): (&str, &str),
    user_agent: &str,
    body: &Value,
) -> (u16, Value) {
    let bytes = if body.is_null() {
        Bytes::new()
    } else {
        body.to_string().into()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(USER_AGENT, user_agent)
        .header(CONTENT_TYPE, content_type)
        .body(Full::new(bytes));
    let Ok(mut request) = request else {
        return (400, Value::Null);
    };
    if let Some(identity) = identity {
        request.extensions_mut().insert(identity);
    }
    let Ok(reply) = super::serve(state, request).await else {
        return (0, Value::Null);
    };
    let code = reply.status().as_u16();
    let body = match reply.into_body().collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null),
        Err(_) => Value::Null,
    };
    (code, body)
}
