//! The webhooks that apply to a request.
//!
//! Upstream: `Webhook.ShouldCallHook`

use std::sync::Arc;

use kube_test_control_plane_api::admission::webhooks::{Failure, Webhook};
use kube_test_control_plane_api::admission::{Attributes, Equivalent};
use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::status::ApiResult;
use serde_json::Value;

use crate::review::form::Form;
use crate::review::input::{Asked, Objects};
#[cfg(feature = "cel")]
use crate::review::policies;
use crate::route::ResourceRequest;
use crate::state::{Access, Reads};

/// The kinds that configure admission, which no webhook reviews.
const EXEMPT: [&str; 6] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Returns true for the kinds that no webhook reviews.
///
/// Upstream: `IsExemptAdmissionConfigurationResource`
pub(super) fn is_exempt(kind: &Kind) -> bool {
    kind.group == "admissionregistration.k8s.io" && EXEMPT.contains(&&*kind.kind)
}

/// A webhook that applies to a request.
pub(super) struct Invocation<'a> {
    pub(super) webhook: &'a Webhook,
    /// The version in which it applies.
    pub(super) form: Form<'a>,
    /// The object in this version.
    pub(super) object: Option<Value>,
    /// The uid of the review.
    pub(super) uid: String,
    /// The review, or the reason why there is none.
    pub(super) review: Result<Value, Failure>,
}

/// Returns the invocation of a webhook if it applies to a request.
///
/// # Errors
///
/// A selector can't be used, the namespace is missing, the object can't be converted, or a condition
/// fails.
pub(super) async fn invocation<'a>(
    access: &Arc<Access>,
    request: &'a ResourceRequest,
    name: &str,
    objects: &Objects<'_>,
    webhook: &'a Webhook,
) -> ApiResult<Option<Invocation<'a>>> {
    if !webhook.constraints.names_resource(&request.kind.plural) {
        return Ok(None);
    }
    let asked = Asked::new(access, request, name, objects);
    let Some(matched) = asked.meets(&webhook.constraints)? else {
        return Ok(None);
    };
    let form = Form::matched(&access.reads, request, &matched);
    let reads = &access.reads;
    let object = sent(reads, &form, objects.object.as_ref()).await?;
    let old_object = sent(reads, &form, objects.old_object.as_ref()).await?;
    let attributes = Attributes {
        object: object.as_ref(),
        old_object: old_object.as_ref(),
        ..asked.attributes
    };
    if !meets_conditions(access, request, webhook, &attributes, &matched)? {
        return Ok(None);
    }
    let uid = access.reads.new_review_uid();
    let review = webhook.review(&uid, &attributes, &matched);
    Ok(Some(Invocation {
        webhook,
        form,
        object,
        uid,
        review,
    }))
}

async fn sent(reads: &Reads, form: &Form<'_>, object: Option<&Value>) -> ApiResult<Option<Value>> {
    match object {
        None => Ok(None),
        Some(object) => form.sent(reads, object).await.map(Some),
    }
}

/// Reports whether a request meets the conditions of a webhook.
///
/// # Errors
///
/// 403 if a condition fails.
#[cfg(feature = "cel")]
fn meets_conditions(
    access: &Arc<Access>,
    request: &ResourceRequest,
    webhook: &Webhook,
    attributes: &Attributes<'_>,
    matched: &Equivalent,
) -> ApiResult<bool> {
    use kube_test_control_plane_api::status::ApiError;

    if !webhook.has_conditions() {
        return Ok(true);
    }
    let met = policies::meets_conditions(access, request, webhook, attributes, matched);
    met.map_err(|text| ApiError::forbidden(&request.kind, attributes.name, &text))
}

/// Allows any request: without CEL, webhooks with conditions can't be stored.
#[cfg(not(feature = "cel"))]
#[expect(clippy::unnecessary_wraps, reason = "conditions can fail")]
fn meets_conditions(
    _: &Arc<Access>,
    _: &ResourceRequest,
    _: &Webhook,
    _: &Attributes<'_>,
    _: &Equivalent,
) -> ApiResult<bool> {
    Ok(true)
}
