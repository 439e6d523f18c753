//! Validating webhooks.
//!
//! Upstream: `validatingDispatcher.Dispatch`

use std::sync::Arc;

use futures::future::join_all;
use kube_test_control_plane_api::admission::webhooks::Failure;
use kube_test_control_plane_api::status::ApiResult;

use super::call::{annotate, call, check_time, publish};
use super::matching::{invocation, is_exempt};
use crate::admission::Phase;
use crate::review::input::Objects;
use crate::route::ResourceRequest;
use crate::state::Access;

/// The annotation of an ignored failure in the audit log.
const FAILED_OPEN: &str = "failed-open.validating.webhook.admission.k8s.io";

/// Asks the webhooks about a request, all at the same time. Of several errors, the one of the first
/// webhook counts; in upstream it is that of the first to respond.
///
/// # Errors
///
/// A webhook denies the request, or fails.
pub(in crate::review) async fn review(
    access: &Arc<Access>,
    request: &ResourceRequest,
    name: &str,
    objects: &Objects<'_>,
) -> ApiResult<()> {
    let index = access
        .reads
        .webhooks
        .index(&access.reads.store, request.admission_revision);
    if is_exempt(&request.kind) {
        return Ok(());
    }
    let mut invocations = Vec::new();
    for webhook in index.of_phase(Phase::Validating) {
        invocations.extend(invocation(access, request, name, objects, webhook).await?);
    }
    if invocations.is_empty() {
        return Ok(());
    }
    check_time(request)?;
    let calls = invocations
        .iter()
        .map(|found| call(access, request, found, false));
    let results = join_all(calls).await;
    let mut first = None;
    for (number, (found, result)) in invocations.iter().zip(results).enumerate() {
        let webhook = found.webhook;
        let failure = match result {
            Ok(mut verdict) => {
                publish(request, &webhook.name, &verdict);
                verdict.denial.take().map(Failure::Request)
            }
            Err(failure) => Some(failure),
        };
        let Some(failure) = failure else { continue };
        let error = webhook.error(failure);
        if error.is_none() {
            let key = format!("{FAILED_OPEN}/round_0_index_{number}");
            annotate(request, key, webhook.name.clone());
        }
        first = first.or(error);
    }
    first.map_or(Ok(()), Err)
}
