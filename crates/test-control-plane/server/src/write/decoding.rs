//! Decoding of request bodies, under the server's policy for unknown fields.

use std::sync::Arc;

use kube_test_control_plane_api::decode::{self, BodyFormat};
use kube_test_control_plane_api::kinds::{Kind, SCALE, Subresource, Target, Trait, stored};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::{FieldValidation, WriteOptions};
use kube_test_control_plane_api::patch::{Patch, Patched};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::strict::MemberCheck;
use kube_test_control_plane_api::{normalize, views};
use serde_json::{Value, json};

use super::conversion;
use crate::incoming::Incoming;
use crate::route::ResourceRequest;
use crate::state::{Behaviour, Reads, Writes};

/// Normalizes an object.
///
/// # Errors
///
/// 400 for a value of the wrong type.
pub(crate) fn normalize(behaviour: Behaviour, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
    normalize::normalize(kind, draft, behaviour.version, behaviour.unknown_fields)
}

/// Reports whether a request scales a custom resource. The field for the replicas may be outside of the
/// schema.
pub(crate) fn is_scaled_custom(request: &ResourceRequest) -> bool {
    request.kind.custom.is_some() && request.requested == Target::Part(Subresource::Scale)
}

/// Normalizes an object that server-side apply has merged.
///
/// # Errors
///
/// 400 for a value of the wrong type.
pub(crate) fn normalize_applied(
    behaviour: Behaviour,
    kind: &Kind,
    draft: &mut Draft,
) -> ApiResult<()> {
    normalize::normalize_applied(kind, draft, behaviour.version, behaviour.unknown_fields)
}

/// Brings a custom resource into the form that the store has: whole floats are integers, and there are
/// no nulls and no fields that the schema doesn't allow, which an apply, mutating webhooks or a scale
/// may have added. Validation sees them all.
///
/// # Errors
///
/// 400 for a value of the wrong type.
pub(crate) fn fit_to_store(
    reads: &Reads,
    request: &ResourceRequest,
    draft: &mut Draft,
) -> ApiResult<()> {
    let kind = stored(&request.kind);
    if kind.custom.is_none() {
        return Ok(());
    }
    decode::make_whole_integers(&mut draft.value);
    if reads.has_reviews() || is_scaled_custom(request) {
        return normalize(reads.behaviour(), kind, draft);
    }
    normalize::drop_nulls(kind, draft);
    Ok(())
}

/// Converts an object from the form that `served` has to the stored one.
///
/// # Errors
///
/// 400 for a value of the wrong type.
pub(crate) fn to_stored(behaviour: Behaviour, served: &Kind, draft: &mut Draft) -> ApiResult<()> {
    if served.has(Trait::View) && served.custom.is_none() {
        normalize(behaviour, served, draft)?;
    }
    views::to_stored(served, &mut draft.value);
    Ok(())
}

/// Returns the check for unknown and repeated fields of a body.
pub(crate) fn member_check(
    behaviour: Behaviour,
    kind: &Arc<Kind>,
    validation: FieldValidation,
) -> MemberCheck<'_> {
    MemberCheck {
        kind,
        validation,
        version: behaviour.version,
        unknown_fields: behaviour.unknown_fields,
    }
}

/// Checks a patch of an object, or of its scale, for repeated and unknown fields.
///
/// # Errors
///
/// 422 with strict field validation.
pub(crate) async fn check_patch(
    reads: &Reads,
    request: &ResourceRequest,
    patch: &Patch,
    text: &[u8],
    validation: FieldValidation,
) -> ApiResult<Vec<String>> {
    if let Some(current) = reads.store.get(&request.key()) {
        conversion::prepare(reads, &request.kind, &[current]).await;
    }
    if request.target == Target::Part(Subresource::Scale) {
        let check = member_check(reads.behaviour(), &SCALE, validation);
        return check.patch(patch, text, || patched_scale(reads, request, patch));
    }
    let check = member_check(reads.behaviour(), &request.kind, validation);
    check.patch(patch, text, || patched(reads, request, patch))
}

/// Converts the decoding error of a PUT to that of a patch.
pub(crate) fn undecodable(
    reads: &Reads,
    request: &ResourceRequest,
    patch: &Patch,
    error: ApiError,
) -> ApiError {
    let patched = patched(reads, request, patch);
    patch.undecodable(&request.kind, error, patched.as_ref().map(|(_, new)| new))
}

/// Returns the object before the patch, and the result. Returns `None` if the object is missing
/// or the patch does not apply; the update itself reports these.
fn patched(reads: &Reads, request: &ResourceRequest, patch: &Patch) -> Option<(Value, Patched)> {
    let current = reads.store.get(&request.key())?;
    let mut old = conversion::known(reads, &request.kind, &current).ok()?;
    views::to_served(&request.kind, &mut old.value);
    let patched = patch.apply(&request.kind, &old).ok()?;
    Some((old.to_value(), patched))
}

/// As [`patched`], for the scale of an object.
fn patched_scale(
    reads: &Reads,
    request: &ResourceRequest,
    patch: &Patch,
) -> Option<(Value, Patched)> {
    let current = reads.store.get(&request.key())?;
    let old = conversion::known(reads, &request.kind, &current).ok()?;
    let scale = Draft {
        value: super::live_scale(stored(&request.kind), &old),
        data: None,
    };
    let patched = patch.apply(&SCALE, &scale).ok()?;
    Some((scale.value, patched))
}

/// Returns the object in a body and the warnings for the client.
pub(crate) fn decode(
    behaviour: Behaviour,
    request: &ResourceRequest,
    incoming: &Incoming,
    options: &WriteOptions,
) -> ApiResult<(Draft, Vec<String>)> {
    let kind = &request.kind;
    let format = incoming.format()?;
    let draft = decode::object(kind, format, &incoming.sent)?;
    let (text, in_yaml) = match format {
        BodyFormat::Yaml => {
            let sent = String::from_utf8_lossy(&incoming.body);
            let text = draft.to_value().to_string();
            (text.into(), decode::repeated_keys(&sent))
        }
        BodyFormat::Json => (incoming.body.clone(), None),
        // Unknown protobuf field numbers don't count as unknown fields.
        BodyFormat::Protobuf => return Ok((draft, Vec::new())),
    };
    let check = member_check(behaviour, kind, options.field_validation);
    let warnings = check.body(&draft, &text, in_yaml)?;
    Ok((draft, warnings))
}

/// Returns a body posted to a subresource as an object of its kind, with the managers of its fields.
/// Only policies and webhooks see these.
///
/// # Errors
///
/// 400 for a value of the wrong type.
pub(crate) fn posted(
    writes: &Writes,
    request: &ResourceRequest,
    kind: &Arc<Kind>,
    body: Value,
    options: &WriteOptions,
) -> ApiResult<Value> {
    if !writes.reads.has_reviews() {
        return Ok(body);
    }
    let reads = &*writes.reads;
    let mut draft = Draft::from_value(kind, body);
    draft.value["apiVersion"] = json!(kind.api_version());
    draft.value["kind"] = json!(kind.kind);
    super::set_namespace(kind, &request.namespace, &mut draft);
    normalize(reads.behaviour(), kind, &mut draft)?;
    let asked = ResourceRequest {
        kind: Arc::clone(kind),
        ..request.clone()
    };
    super::track(reads.clock(), &asked, options, None, &mut draft)?;
    Ok(draft.to_value())
}
