//! Rules of `PersistentVolumeClaims`.

use serde_json::{Value, json};

use super::{FieldError, Subject, at};
use crate::route::Target;

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
    match subject.old {
        None => validate_spec(spec, "spec", errors),
        Some(old) => immutable(spec, old.value.get("spec").unwrap_or(&null), errors),
    }
}

/// The rules of a claim's spec, also inside a claim template.
pub(super) fn validate_spec(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
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
    if at(spec, "/resources/requests/storage").is_none() {
        errors.push(FieldError::required(
            format!("{path}.resources[storage]"),
            "",
        ));
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

fn immutable(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let mut new = new.clone();
    // The binder sets the volume's name once.
    if old.get("volumeName").is_none_or(|name| name == "") {
        copy(&mut new, old, "volumeName");
    }
    if let (Some(requests), Some(resources)) = (
        old.pointer("/resources/requests"),
        new.get_mut("resources").and_then(Value::as_object_mut),
    ) {
        resources.insert("requests".to_owned(), requests.clone());
    }
    copy(&mut new, old, "volumeAttributesClassName");
    if new != *old {
        errors.push(FieldError::forbidden("spec", IMMUTABLE));
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
