//! Rules of `PersistentVolumeClaims`.

use kube_apimachinery::quantity::Quantity;
use serde_json::{Value, json};

use super::{FieldError, Subject, at, inner, label_selector, names};
use crate::kinds::Target;

const IMMUTABLE: &str = "spec is immutable after creation except resources.requests and \
     volumeAttributesClassName for bound claims";

const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

pub(super) fn validate(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    if subject.target != Target::Object {
        return;
    }
    let null = Value::Null;
    let spec = subject.new.value.get("spec").unwrap_or(&null);
    validate_spec(spec, "spec", errors);
    if let Some(old) = subject.old {
        let status = old.value.get("status").unwrap_or(&null);
        immutable(spec, old.value.get("spec").unwrap_or(&null), status, errors);
    }
}

/// Validates a claim's spec, also inside a claim template.
pub(super) fn validate_spec(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(selector) = at(spec, "/selector") {
        label_selector::validate(selector, &format!("{path}.selector"), errors);
    }
    let modes = at(spec, "/accessModes").and_then(Value::as_array);
    if modes.is_none_or(Vec::is_empty) {
        errors.push(FieldError::required(
            format!("{path}.accessModes"),
            "at least 1 access mode is required",
        ));
    }
    for mode in modes.into_iter().flatten() {
        if !ACCESS_MODES.iter().any(|known| mode == known) {
            let field = format!("{path}.accessModes");
            errors.push(FieldError::not_supported(field, mode, &ACCESS_MODES));
        }
    }
    let only = "ReadWriteOncePod";
    let modes = modes.map_or(&[][..], Vec::as_slice);
    if modes.iter().any(|mode| mode == only) && modes.iter().any(|mode| mode != only) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(format!("{path}.accessModes"), detail));
    }
    storage(spec, &format!("{path}.resources[storage]"), errors);
    if let Some(class) = at(spec, "/storageClassName")
        && let Some(name) = class.as_str().filter(|name| !name.is_empty())
    {
        for message in names::dns_subdomain(name) {
            let field = format!("{path}.storageClassName");
            errors.push(FieldError::invalid(field, class, message));
        }
    }
    if let Some(mode) = at(spec, "/volumeMode")
        && mode != "Block"
        && mode != "Filesystem"
    {
        let field = format!("{path}.volumeMode");
        errors.push(FieldError::not_supported(
            field,
            mode,
            &["Block", "Filesystem"],
        ));
    }
}

/// Validates the requested size.
fn storage(spec: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let Some(size) = at(spec, "/resources/requests/storage") else {
        errors.push(FieldError::required(field, ""));
        return;
    };
    let parsed = size.as_str().and_then(|size| size.parse::<Quantity>().ok());
    if parsed.is_some_and(|size| size <= Quantity::default()) {
        errors.push(FieldError::invalid(
            field,
            size,
            "must be greater than zero",
        ));
    }
}

/// Upstream: `ValidatePersistentVolumeClaimUpdate`.
fn immutable(new: &Value, old: &Value, status: &Value, errors: &mut Vec<FieldError>) {
    let (mut now, mut before) = (new.clone(), old.clone());
    // The volume name and the default class may be set later, but only once.
    for member in ["volumeName", "storageClassName"] {
        if old.get(member).is_none_or(|name| name == "") {
            copy(&mut before, new, member);
        }
    }
    let size = "/resources/requests/storage";
    if status.get("phase") == Some(&json!("Bound"))
        && let Some(found) = now.pointer_mut(size)
        && let Some(storage) = old.pointer(size)
    {
        *found = storage.clone();
    }
    copy(&mut now, old, "volumeAttributesClassName");
    if now != before {
        let difference = inner::diff("PersistentVolumeClaimSpec", &before, &now);
        errors.push(FieldError::forbidden(
            "spec",
            &format!("{IMMUTABLE}\n{difference}"),
        ));
    }
    let quantity = |value: Option<&Value>| value?.as_str()?.parse::<Quantity>().ok();
    let (Some(wanted), Some(had)) = (quantity(new.pointer(size)), quantity(old.pointer(size)))
    else {
        return;
    };
    let capacity = quantity(status.pointer("/capacity/storage"));
    let is_too_small = capacity.is_none_or(|capacity| wanted.value() <= capacity.value());
    if wanted.value() < had.value() && is_too_small {
        errors.push(FieldError::forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        ));
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
