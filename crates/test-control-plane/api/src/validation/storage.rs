//! Rules of volumes, their claims and classes.

use kube_apimachinery::quantity::Quantity;
use serde_json::{Value, json};

use super::inner;
use super::place::{Errors, Place};
use crate::members::{at, text_at};
use crate::status::FieldError;

const IMMUTABLE: &str = "spec is immutable after creation except resources.requests and \
     volumeAttributesClassName for bound claims";

/// Members of a volume's spec that aren't volume sources.
const NO_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) fn storage_capacity(capacity: &Place<'_>, errors: &mut Errors) {
    if !capacity.member("storage").is_present() {
        let path = capacity.path();
        errors.push(FieldError::not_supported(
            path,
            capacity.value,
            &["storage"],
        ));
    }
}

pub(super) fn volume_type(spec: &Place<'_>, errors: &mut Errors) {
    let mut members = spec.value.as_object().into_iter().flatten();
    if members.all(|(member, _)| NO_SOURCES.contains(&member.as_str())) {
        errors.push(spec.required("must specify a volume type"));
    }
}

pub(super) fn parameter_names(parameters: &Place<'_>, errors: &mut Errors) {
    let map = parameters.value.as_object();
    if map.is_some_and(|map| map.contains_key("")) {
        let detail = "field can not be empty";
        errors.push(FieldError::invalid(parameters.path(), &json!(""), detail));
    }
}

/// Rejects other access modes besides `ReadWriteOncePod`.
pub(super) fn one_pod_only(modes: &Place<'_>, errors: &mut Errors) {
    let is_only = |mode: Place<'_>| mode.text() == "ReadWriteOncePod";
    if modes.values().any(is_only) && !modes.values().all(is_only) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(modes.forbidden(detail));
    }
}

pub(super) fn positive_size(size: &Place<'_>, errors: &mut Errors) {
    if quantity(Some(size.value)).is_some_and(|size| size <= Quantity::default()) {
        errors.push(size.invalid("must be greater than zero"));
    }
}

fn quantity(value: Option<&Value>) -> Option<Quantity> {
    value?.as_str()?.parse().ok()
}

/// Upstream: `ValidatePersistentVolumeClaimUpdate`.
pub(super) fn claim_update(claim: &Place<'_>, errors: &mut Errors) {
    let spec = claim.member("spec");
    let (new, Some(old)) = (spec.value, spec.old) else {
        return;
    };
    let status = claim.member("status").old.unwrap_or(&Value::Null);
    let (mut now, mut before) = (new.clone(), old.clone());
    // The volume name and the default class may be set later, but only once.
    for member in ["volumeName", "storageClassName"] {
        if old.get(member).is_none_or(|name| name == "") {
            copy(&mut before, new, member);
        }
    }
    let size = "/resources/requests/storage";
    if text_at(status, "/phase") == "Bound"
        && let Some(found) = now.pointer_mut(size)
        && let Some(storage) = old.pointer(size)
    {
        *found = storage.clone();
    }
    copy(&mut now, old, "volumeAttributesClassName");
    if now != before {
        let difference = inner::diff("PersistentVolumeClaimSpec", &before, &now);
        errors.push(spec.forbidden(&format!("{IMMUTABLE}\n{difference}")));
    }
    let (Some(wanted), Some(had)) = (quantity(at(new, size)), quantity(at(old, size))) else {
        return;
    };
    let capacity = quantity(at(status, "/capacity/storage"));
    let is_too_small = capacity.is_none_or(|capacity| wanted.value() <= capacity.value());
    if wanted.value() < had.value() && is_too_small {
        let detail = "field can not be less than status.capacity";
        errors.push(spec.member("resources.requests.storage").forbidden(detail));
    }
}

fn copy(into: &mut Value, from: &Value, member: &str) {
    let value = from.get(member).cloned();
    let Some(map) = into.as_object_mut() else {
        *into = json!({});
        return;
    };
    match value {
        Some(value) => map.insert(member.to_owned(), value),
        None => map.remove(member),
    };
}
