//! Responses of the API server that are errors.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http_body_util::{BodyExt as _, Full};
use kube_test_control_plane::faults::{FaultError, RequestFacts};
use kube_test_control_plane::reply::{BoxError, Reply, ResponseBody};

/// Returns the API server's response with an error, and with its wait time in the header as well.
pub(super) fn rejected(error: &FaultError, facts: &RequestFacts) -> Result<Reply, BoxError> {
    let mut response = http::Response::builder().status(error.code());
    let status = error.status(facts);
    let wait = match (error, &status) {
        (
            FaultError::Overloaded {
                retry_after_seconds,
            },
            _,
        ) => Some(u64::from(*retry_after_seconds)),
        (_, Some(status)) => status["details"]["retryAfterSeconds"].as_u64(),
        _ => None,
    };
    if let Some(wait) = wait {
        response = response.header(RETRY_AFTER, wait);
    }
    let (content, text) = match status {
        Some(status) => ("application/json", status.to_string()),
        None => ("text/plain", "Too many requests".to_owned()),
    };
    let body = Full::new(Bytes::from(text));
    let body: ResponseBody = body.map_err(Into::into).boxed_unsync();
    Ok(response.header(CONTENT_TYPE, content).body(body)?)
}
