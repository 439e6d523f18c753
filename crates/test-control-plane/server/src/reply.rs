//! Responses.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WARNING, X_CONTENT_TYPE_OPTIONS};
use http::response::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::response::pretty;
use kube_test_control_plane_api::status::{self, ApiError, ApiResult, details};
use serde_json::{Value, json};

/// An error of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response, complete or streamed.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// The connection was dropped by a fault, or upstream would have panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was dropped")]
pub struct ConnectionDropped;

/// A response.
pub type Reply = Response<ResponseBody>;

/// Returns a response with an object as JSON text. As Go's encoder does, it ends the line.
pub(crate) fn json_text(code: StatusCode, text: impl AsRef<[u8]>) -> Reply {
    document(code, [text.as_ref(), b"\n"].concat())
}

/// Returns a response with exactly this JSON text.
pub(crate) fn document(code: StatusCode, text: impl Into<Bytes>) -> Reply {
    with_type(code, "application/json", text)
}

/// Returns a response with an indented JSON value, whatever the client prefers.
pub(crate) fn indented(code: StatusCode, value: &Value) -> Reply {
    document(code, pretty::indent(value.to_string().as_bytes()))
}

/// Longer bodies than this, in bytes, are sent in their original pieces.
const JOINED_MAX: usize = 64 * 1024;

/// Returns a response with JSON text in pieces. A long body is sent without copying and without a
/// content length.
pub(crate) fn json_pieces(code: StatusCode, pieces: Vec<Bytes>) -> Reply {
    let size: usize = pieces.iter().map(Bytes::len).sum();
    if size <= JOINED_MAX {
        return json_text(code, pieces.concat());
    }
    let (parts, _) = document(code, Bytes::new()).into_parts();
    let end = Bytes::from_static(b"\n");
    streamed(parts, stream::iter(pieces.into_iter().chain([end]).map(Ok)))
}

/// Returns a response with another body.
pub(crate) fn with_body(parts: Parts, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(Into::into).boxed_unsync();
    Response::from_parts(parts, body)
}

/// Returns a response with a JSON value.
pub(crate) fn json_value(code: StatusCode, value: &Value) -> Reply {
    json_text(code, value.to_string())
}

/// Returns plain text.
pub fn plain(code: StatusCode, text: impl Into<Bytes>) -> Reply {
    let mut reply = with_type(code, "text/plain; charset=utf-8", text);
    let value = HeaderValue::from_static("nosniff");
    reply.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, value);
    reply
}

/// Returns plain text without a charset, as for logs.
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

/// Marks responses with an unlimited stream as body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streamed;

/// Returns a stream of JSON lines.
pub(crate) fn stream(lines: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Reply {
    let body = StreamBody::new(lines.map_ok(Frame::data)).boxed_unsync();
    let mut reply = Response::new(body);
    reply.extensions_mut().insert(Streamed);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}

/// Returns a stream of plain text, as for a log that is followed.
pub(crate) fn streamed_text(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Reply {
    let (mut parts, _) = text(StatusCode::OK, Bytes::new()).into_parts();
    parts.extensions.insert(Streamed);
    streamed(parts, pieces.map(Ok))
}

/// Returns a response with a stream as body.
pub(crate) fn streamed(
    parts: Parts,
    pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> Reply {
    let body = StreamBody::new(pieces.map_ok(Frame::data).fuse()).boxed_unsync();
    Response::from_parts(parts, body)
}

/// Returns an error's `Status`.
pub(crate) fn error(error: &ApiError) -> Reply {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = json_text(code, error.to_text());
    if let Some(seconds) = error.retry_after_seconds() {
        reply
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    reply
}

/// Returns the response to a request that exceeded its timeout. Upstream gives it no kind and
/// a text content type.
pub(crate) fn timed_out() -> Reply {
    let code = StatusCode::GATEWAY_TIMEOUT;
    let status = json!({
        "metadata": {},
        "status": "Failure",
        "message": "Timeout: request did not complete within the allotted timeout",
        "reason": "Timeout",
        "details": {},
        "code": code.as_u16(),
    });
    with_type(code, "text/plain; charset=utf-8", format!("{status}\n"))
}

/// Returns the `Status` of a success without an object.
pub(crate) fn success(code: StatusCode) -> Reply {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": code.as_u16(),
    });
    json_text(code, status::text(&status))
}

/// Returns the `Status` of a deletion.
pub(crate) fn deleted(kind: &Kind, name: &str, uid: &str) -> Reply {
    let mut details = details(name, &kind.group, &kind.plural);
    details["uid"] = json!(uid);
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    });
    json_text(StatusCode::OK, status::text(&status))
}

/// Limit of a response's warnings, in characters, above which each is truncated.
const WARNINGS_MAX: usize = 4096;

/// Length of a truncated warning in characters.
const CUT_WARNING: usize = 256;

/// Adds warnings to a response, which may be an error.
pub(crate) fn with_warnings(reply: ApiResult<Reply>, warnings: &[String]) -> ApiResult<Reply> {
    if warnings.is_empty() {
        return reply;
    }
    let mut reply = reply.unwrap_or_else(|err| error(&err));
    let mut seen = BTreeSet::new();
    let distinct: Vec<&str> = warnings
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty() && seen.insert(*text))
        .collect();
    for text in within_limits(&distinct) {
        warn(&mut reply, text);
    }
    Ok(reply)
}

/// Adds a warning before those of the response.
pub(crate) fn with_first_warning(reply: ApiResult<Reply>, text: Option<&str>) -> ApiResult<Reply> {
    let Some(text) = text else {
        return reply;
    };
    let mut reply = reply.unwrap_or_else(|err| error(&err));
    let found = reply.headers().get_all(WARNING).iter();
    let others: Vec<HeaderValue> = found.cloned().collect();
    reply.headers_mut().remove(WARNING);
    warn(&mut reply, text);
    for other in others {
        reply.headers_mut().append(WARNING, other);
    }
    Ok(reply)
}

/// Returns the warnings within the limit: all of them unchanged, or truncated ones up to the limit.
///
/// Upstream: `recorder.AddWarning`
fn within_limits<'a>(texts: &[&'a str]) -> Vec<&'a str> {
    let size = |text: &str| text.chars().count();
    let mut total = 0;
    let too_much = texts.iter().position(|text| {
        total += size(text);
        total > WARNINGS_MAX
    });
    let Some(too_much) = too_much else {
        return texts.to_vec();
    };
    let mut total = 0;
    let mut kept = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        if index > too_much && total >= WARNINGS_MAX {
            break;
        }
        let end = text.char_indices().nth(CUT_WARNING).map(|(end, _)| end);
        let cut = &text[..end.unwrap_or(text.len())];
        total += size(cut);
        kept.push(cut);
    }
    kept
}

/// Adds a warning for kubectl to print. A text that is invalid in a header is skipped.
pub(crate) fn warn(reply: &mut Reply, text: &str) {
    if text.chars().any(char::is_control) {
        return;
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()) {
        reply.headers_mut().append(WARNING, value);
    }
}

/// Returns the response for unknown paths.
pub(crate) fn unknown_path() -> Reply {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(warnings: &[String]) -> Vec<String> {
        let reply = with_warnings(Ok(success(StatusCode::OK)), warnings).unwrap();
        let found = reply.headers().get_all(WARNING).iter();
        let texts = found.map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap());
        texts.collect()
    }

    #[test]
    fn warnings_are_deduplicated_and_quoted() {
        let warnings = ["a \"b\" \\c", "é", "", "é", "x\ny"].map(str::to_owned);
        assert_eq!(warned(&warnings), [r#"299 - "a \"b\" \\c""#, "299 - \"é\""]);
    }

    #[test]
    fn many_long_warnings_are_truncated() {
        let warnings: Vec<String> = (0..20).map(|i| format!("{i}{}", "é".repeat(300))).collect();
        let found = warned(&warnings);
        assert_eq!(found.len(), WARNINGS_MAX / CUT_WARNING);
        assert!(
            found
                .iter()
                .all(|text| text.chars().count() == CUT_WARNING + 8)
        );
        assert_eq!(warned(&warnings[..2])[0].chars().count(), 301 + 8);
    }
}
