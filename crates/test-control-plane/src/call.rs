//! Requests from within the process, for actors and tests that need no client library.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use crate::server::ApiServer;

impl ApiServer {
    /// Sends a request with a JSON body, or none if it is null; patches are strategic. Returns the
    /// code and the body of the answer: 0 and null if a fault dropped the connection.
    pub async fn call_json(
        &self,
        method: Method,
        path: &str,
        user_agent: &str,
        body: &Value,
    ) -> (u16, Value) {
        let content_type = if method == Method::PATCH {
            "application/strategic-merge-patch+json"
        } else {
            "application/json"
        };
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
        let Ok(request) = request else {
            return (400, Value::Null);
        };
        let Ok(reply) = self.serve(request).await else {
            return (0, Value::Null);
        };
        let code = reply.status().as_u16();
        let body = match reply.into_body().collect().await {
            Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null),
            Err(_) => Value::Null,
        };
        (code, body)
    }
}
