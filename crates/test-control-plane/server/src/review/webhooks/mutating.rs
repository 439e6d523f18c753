//! Mutating webhooks.
//!
//! Upstream: `mutatingDispatcher.Dispatch`

use std::sync::Arc;

use kube_test_control_plane_api::admission::webhooks::{Failure, Verdict, Webhook};
use kube_test_control_plane_api::status::ApiResult;
use serde_json::{Value, json};

use super::call::{annotate, call, check_time, publish};
use super::matching::{Invocation, invocation, is_exempt};
use crate::admission::Phase;
use crate::review::mutation::Mutation;
use crate::route::ResourceRequest;

/// The annotations of a call in the audit log: about a change, a patch, and a failure.
const MUTATION: &str = "mutation.webhook.admission.k8s.io";
const PATCH: &str = "patch.webhook.admission.k8s.io";
const FAILED_OPEN: &str = "failed-open.mutation.webhook.admission.k8s.io";

/// Lets the webhooks change the object of a request, one after the other.
///
/// # Errors
///
/// A webhook denies the request, or fails.
pub(in crate::review) async fn mutate(mutation: &mut Mutation<'_>) -> ApiResult<()> {
    let access = Arc::clone(mutation.access);
    let request = mutation.request;
    let index = access
        .reads
        .webhooks
        .index(&access.reads.store, request.admission_revision);
    if is_exempt(&request.kind) {
        return Ok(());
    }
    for (number, webhook) in index.of_phase(Phase::Mutating).enumerate() {
        let (name, objects) = (mutation.name, &mutation.objects);
        let Some(found) = invocation(&access, request, name, objects, webhook).await? else {
            continue;
        };
        if !mutation.webhooks.calls(&webhook.id) {
            continue;
        }
        let place = Place {
            request,
            webhook,
            key: format!("round_{}_index_{number}", mutation.webhooks.round()),
        };
        let changed = change(mutation, &found, &place).await;
        place.note_mutation(matches!(changed, Ok(true)));
        if matches!(changed, Ok(true)) {
            mutation.webhooks.changed();
            mutation.is_changed = true;
        }
        if webhook.is_reinvoked {
            mutation.webhooks.note(webhook.id.clone());
        }
        if let Err(failure) = changed {
            if let Some(error) = webhook.error(failure) {
                return Err(error);
            }
            place.note_failure();
            check_time(request)?;
        }
    }
    Ok(())
}

/// The place of a call in the audit log.
struct Place<'a> {
    request: &'a ResourceRequest,
    webhook: &'a Webhook,
    key: String,
}

impl Place<'_> {
    /// Notes if the webhook changed the object.
    ///
    /// Upstream: `mutationAnnotationValue`
    fn note_mutation(&self, is_changed: bool) {
        let value = format!("{{{},\"mutated\":{is_changed}}}", self.members());
        annotate(self.request, format!("{MUTATION}/{}", self.key), value);
    }

    /// Notes a patch.
    ///
    /// Upstream: `jsonPatchAnnotationValue`
    fn note_patch(&self, patch: &Value) {
        let members = self.members();
        let value = format!("{{{members},\"patch\":{patch},\"patchType\":\"JSONPatch\"}}");
        annotate(self.request, format!("{PATCH}/{}", self.key), value);
    }

    /// Notes an ignored failure.
    fn note_failure(&self) {
        let key = format!("{FAILED_OPEN}/{}", self.key);
        annotate(self.request, key, self.webhook.name.clone());
    }

    fn members(&self) -> String {
        let (configuration, webhook) = (&self.webhook.configuration, &self.webhook.name);
        format!(
            "\"configuration\":{},\"webhook\":{}",
            json!(configuration),
            json!(webhook)
        )
    }
}

/// Calls a webhook and applies its patch. Returns true if that changes the object.
async fn change(
    mutation: &mut Mutation<'_>,
    found: &Invocation<'_>,
    place: &Place<'_>,
) -> Result<bool, Failure> {
    let webhook = found.webhook;
    let mut verdict: Verdict = call(mutation.access, mutation.request, found, true).await?;
    publish(mutation.request, &webhook.name, &verdict);
    if let Some(denial) = verdict.denial.take() {
        return Err(Failure::Request(denial));
    }
    let Some(patch) = verdict.patch(&webhook.name, found.object.is_some())? else {
        return Ok(false);
    };
    let Some(before) = &found.object else {
        return Ok(false);
    };
    let patched = patch.apply(before).map_err(Failure::Request)?;
    let reads = &mutation.access.reads;
    let after = found.form.read(reads, patched).map_err(Failure::Request)?;
    place.note_patch(&patch.value);
    // A removed default counts as a change, although it is set again. Upstream's types hold new times
    // with fractions, which the first patch of an object loses.
    let is_changed = !found.form.is_same(reads, &after, before)
        || !found.form.is_custom() && mutation.has_new_times();
    mutation.is_decoded = true;
    let after = found.form.with_defaults(reads, after);
    let received = found.form.received(reads, after).await;
    mutation.objects.object = Some(received.map_err(Failure::Request)?);
    Ok(is_changed)
}
