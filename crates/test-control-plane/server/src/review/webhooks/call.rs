//! The call of a webhook.

use std::time::Duration;

use bytes::Bytes;
use kube_test_control_plane_api::admission::webhooks::{Failure, Verdict};
use kube_test_control_plane_api::status::{ApiError, ApiResult, details};
use kube_test_control_plane_api::validation;

use super::matching::Invocation;
use crate::admission::Call;
use crate::faults::CalledWebhook;
use crate::route::ResourceRequest;
use crate::state::Access;

/// The time limit of a whole request.
///
/// Upstream: `requestTimeoutUpperBound`
const REQUEST_MAX: Duration = Duration::from_secs(34);

/// Calls a webhook and reads its response. Its warnings are for the client, its annotations for the
/// audit log.
///
/// # Errors
///
/// The call fails, or the response is wrong.
pub(super) async fn call(
    access: &Access,
    request: &ResourceRequest,
    invocation: &Invocation<'_>,
    is_mutating: bool,
) -> Result<Verdict, Failure> {
    let webhook = invocation.webhook;
    let review = invocation.review.as_ref().map_err(Clone::clone)?;
    let client = webhook.client.as_ref().map_err(|why| {
        // As in upstream, the error names the webhook twice.
        let why = format!("failed calling webhook {:?}: {why}", webhook.name);
        Failure::Call(format!("could not get REST client: {why}"))
    })?;
    let left = time_left(request);
    let timeout = webhook.timeout.map_or(left, |timeout| timeout.min(left));
    let body = Bytes::from(review.to_string());
    let call = Call {
        called: CalledWebhook {
            configuration: &webhook.configuration,
            webhook: &webhook.name,
        },
        config: client,
        limit: timeout,
        expired: "context deadline exceeded",
        body,
    };
    let reply = access.reads.webhooks.client.post(call).await;
    let reply = reply.map_err(|why| Failure::Call(format!("failed to call webhook: {why}")))?;
    webhook.verdict(&invocation.uid, is_mutating, &reply)
}

/// Returns the time that a request has for calls.
fn time_left(request: &ResourceRequest) -> Duration {
    let passed = request
        .begun
        .map_or(Duration::ZERO, |begun| begun.elapsed());
    REQUEST_MAX.saturating_sub(passed)
}

/// Fails a request that has run out of time.
///
/// # Errors
///
/// 504 after the time limit.
pub(super) fn check_time(request: &ResourceRequest) -> ApiResult<()> {
    if !time_left(request).is_zero() {
        return Ok(());
    }
    let message = "Timeout: request did not complete within requested timeout";
    Err(ApiError {
        details: Some(details("", "", "")),
        ..ApiError::new(504, "Timeout", message)
    })
}

/// Publishes what a response has for the client and for the audit log.
pub(super) fn publish(request: &ResourceRequest, webhook: &str, verdict: &Verdict) {
    for (key, value) in &verdict.annotations {
        annotate(request, format!("{webhook}/{key}"), value.clone());
    }
    for warning in &verdict.warnings {
        request.remarks.warn(warning.clone());
    }
}

/// Annotates the request in the audit log, unless the key is invalid.
///
/// Upstream: `checkKeyFormat`
pub(super) fn annotate(request: &ResourceRequest, key: String, value: String) {
    let has_prefix = key.split('/').count() == 2;
    if has_prefix && validation::qualified_name(&key).is_empty() {
        request.remarks.annotate(key, value);
    } else {
        tracing::warn!(key, "left out an audit annotation with an invalid key");
    }
}
