//! Answers.

use bytes::Bytes;
use futures::Stream;
use futures::{StreamExt, TryStreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WARNING, X_CONTENT_TYPE_OPTIONS};
use http::response::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult, details};

/// An error of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer, whole or a stream.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// An answer on its way.
pub type Reply = Response<ResponseBody>;

/// A whole body of JSON text.
pub fn json_text(code: StatusCode, text: impl Into<Bytes>) -> Reply {
    with_type(code, "application/json", text)
}

/// An answer with another body.
pub(crate) fn with_body(parts: Parts, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(Into::into).boxed_unsync();
    Response::from_parts(parts, body)
}

/// A whole body from a value.
pub fn json_value(code: StatusCode, value: &Value) -> Reply {
    json_text(code, value.to_string())
}

/// Plain text.
pub fn plain(code: StatusCode, text: impl Into<Bytes>) -> Reply {
    let mut reply = with_type(code, "text/plain; charset=utf-8", text);
    let value = HeaderValue::from_static("nosniff");
    reply.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, value);
    reply
}

/// Plain text without a charset, as logs are.
pub fn text(code: StatusCode, text: impl Into<Bytes>) -> Reply {
    with_type(code, "text/plain", text)
}

fn with_type(code: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(Into::into).boxed_unsync();
    let mut reply = Response::new(body);
    *reply.status_mut() = code;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}

/// Marks the answers whose body goes on as long as the client reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streamed;

/// A stream of JSON lines.
pub fn stream(lines: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Reply {
    let body = StreamBody::new(lines.map_ok(Frame::data)).boxed_unsync();
    let mut reply = Response::new(body);
    reply.extensions_mut().insert(Streamed);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}

/// An answer whose body is a stream.
pub(crate) fn streamed(
    parts: Parts,
    pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> Reply {
    let body = StreamBody::new(pieces.map_ok(Frame::data).fuse()).boxed_unsync();
    Response::from_parts(parts, body)
}

/// An error's `Status`.
pub fn error(error: &ApiError) -> Reply {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = json_value(code, &error.to_value());
    if let Some(seconds) = error.retry_after_seconds() {
        reply
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    reply
}

/// The `Status` of something that went well and has no object to show.
pub fn success(code: StatusCode) -> Reply {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": code.as_u16(),
    });
    json_value(code, &status)
}

/// The `Status` of a deletion.
pub fn deleted(kind: &Kind, name: &str, uid: &str) -> Reply {
    let mut details = details(name, kind.group, kind.plural);
    details["uid"] = json!(uid);
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    });
    json_value(StatusCode::OK, &status)
}

/// Adds warnings to an answer, which may be an error.
pub(crate) fn with_warnings(reply: ApiResult<Reply>, warnings: &[String]) -> ApiResult<Reply> {
    if warnings.is_empty() {
        return reply;
    }
    let mut reply = reply.unwrap_or_else(|err| error(&err));
    for text in warnings {
        warn(&mut reply, text);
    }
    Ok(reply)
}

/// Adds a warning that kubectl prints.
pub fn warn(reply: &mut Reply, text: &str) {
    let quoted = format!("299 - {}", Value::from(text));
    if let Ok(value) = HeaderValue::from_bytes(quoted.as_bytes()) {
        reply.headers_mut().append(WARNING, value);
    }
}
