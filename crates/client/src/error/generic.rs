//! Messages for a response without a `Status` object, as proxies and broken servers send it.

use kube_apimachinery::protobuf::{self, Envelope};

use super::status::Status;
use crate::resource::GroupResource;

/// Maximum length of a body quoted in a message, in bytes.
const QUOTED_BODY_BYTES_MAX: usize = 2048;

/// Returns the server's `Status`, or one derived from the code.
///
/// `verb` is the HTTP method; `name` may be empty.
///
/// Upstream: `newUnstructuredResponseError`, `NewGenericServerResponse`.
pub(super) fn status_of_response(
    code: u16,
    body: &[u8],
    verb: &str,
    resource: GroupResource,
    name: &str,
) -> Status {
    if let Some(status) = status(body)
        && status.status != "Success"
    {
        return Status {
            code: nonzero_or(status.code, code),
            ..status
        };
    }
    let quoted = body.get(..QUOTED_BODY_BYTES_MAX).unwrap_or(body);
    let body_text = String::from_utf8_lossy(quoted);
    let (reason, sentence) = sentence(code, verb, body_text.trim());
    let verb = verb.to_ascii_lowercase();
    let separator = if name.is_empty() { "" } else { " " };
    let message = format!("{sentence} ({verb} {resource}{separator}{name})");
    Status::failure(code, reason, message)
}

/// Reads a `Status`, in JSON or protobuf.
fn status(body: &[u8]) -> Option<Status> {
    if body.starts_with(&protobuf::PREFIX) {
        let envelope = Envelope::read(body).ok()?;
        let is_status = envelope.kind == "Status";
        return Status::from_protobuf(envelope.raw)
            .ok()
            .filter(|_| is_status);
    }
    let kind: Kind<'_> = serde_json::from_slice(body).ok()?;
    let status = serde_json::from_slice(body).ok();
    status.filter(|_| kind.kind == "Status")
}

/// The field that distinguishes a `Status` from other objects.
#[derive(serde::Deserialize)]
struct Kind<'a> {
    kind: &'a str,
}

fn nonzero_or(code: u16, fallback: u16) -> u16 {
    if code == 0 { fallback } else { code }
}

/// Returns the reason and the message for a code.
fn sentence(code: u16, verb: &str, body: &str) -> (&'static str, String) {
    let (reason, text) = match code {
        400 => (
            "BadRequest",
            "the server rejected our request for an unknown reason",
        ),
        401 => (
            "Unauthorized",
            "the server has asked for the client to provide credentials",
        ),
        403 => ("Forbidden", body),
        404 => (
            "NotFound",
            "the server could not find the requested resource",
        ),
        405 => (
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
        409 if verb == "POST" => ("AlreadyExists", "the server reported a conflict"),
        409 => ("Conflict", "the server reported a conflict"),
        410 => (
            "Gone",
            "the requested version is no longer kept by the server",
        ),
        415 => ("UnsupportedMediaType", body),
        422 => (
            "Invalid",
            "the server rejected our request due to an error in our request",
        ),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, \
             but may still be processing the request",
        ),
        500.. => {
            let text = format!(
                "an error on the server ({body:?}) has prevented the request from succeeding"
            );
            return ("InternalError", text);
        }
        _ => {
            let text = format!(
                "the server responded with the status code {code} \
                 but did not return more information"
            );
            return ("", text);
        }
    };
    (reason, text.to_owned())
}
