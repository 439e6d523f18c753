//! Rules of volumes.

mod projected;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Errors, label, list, number, required, text};
use crate::status::FieldError;

/// The sources with required members, and those members.
const REQUIRED: &[(&str, &[&str])] = &[
    ("hostPath", &["path"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("configMap", &["name"]),
    ("csi", &["driver"]),
];

/// Validates the volumes and returns the names of the valid ones.
///
/// Upstream: `ValidateVolumes`.
pub(super) fn validate<'a>(spec: &'a Value, path: &str, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (i, volume) in list(spec, "volumes").enumerate() {
        let path = format!("{path}.volumes[{i}]");
        let mut wrong = Vec::new();
        source(volume, &path, &mut wrong);
        let name = text(volume, "name");
        let field = format!("{path}.name");
        if name.is_empty() {
            wrong.push(FieldError::required(field.as_str(), ""));
        } else {
            label(name, &field, &mut wrong);
        }
        if names.contains(name) {
            wrong.push(FieldError::duplicate(field, &json!(name)));
        }
        if wrong.is_empty() {
            names.insert(name);
        }
        errors.append(&mut wrong);
    }
    names
}

/// Upstream: `validateVolumeSource`.
fn source(volume: &Value, path: &str, errors: &mut Errors) {
    let members = volume.as_object().into_iter().flatten();
    let mut sources = members.filter(|(member, found)| *member != "name" && !found.is_null());
    let Some((member, found)) = sources.next() else {
        errors.push(FieldError::required(path, "must specify a volume type"));
        return;
    };
    let place = format!("{path}.{member}");
    let needed = REQUIRED.iter().find(|(of, _)| of == member);
    for needed in needed.into_iter().flat_map(|(_, needed)| *needed) {
        required(found, needed, &place, errors);
    }
    file_mode(found, "defaultMode", &place, errors);
    match member.as_str() {
        "projected" => projected::validate(found, &place, errors),
        _ => items(found, member, &place, errors),
    }
    for (member, _) in sources {
        let detail = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(format!("{path}.{member}"), detail));
    }
}

/// Validates the files that a volume takes from its source.
///
/// Upstream: `validateKeyToPath` and `validateDownwardAPIVolumeFile`, which doesn't tell which of
/// the files it means.
fn items(source: &Value, member: &str, path: &str, errors: &mut Errors) {
    for (i, item) in list(source, "items").enumerate() {
        if member == "downwardAPI" {
            file(item, path, errors);
            continue;
        }
        let path = format!("{path}.items[{i}]");
        if matches!(member, "secret" | "configMap") {
            required(item, "key", &path, errors);
        }
        file(item, &path, errors);
    }
}

/// Validates the path and mode of a file.
fn file(item: &Value, path: &str, errors: &mut Errors) {
    required(item, "path", path, errors);
    local_path(text(item, "path"), &format!("{path}.path"), errors);
    file_mode(item, "mode", path, errors);
}

fn file_mode(value: &Value, member: &str, path: &str, errors: &mut Errors) {
    let mode = number(value, member);
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        let field = format!("{path}.{member}");
        errors.push(FieldError::invalid(field, &json!(mode), detail));
    }
}

/// Rejects paths that leave the volume.
///
/// Upstream: `ValidateLocalNonReservedPath`.
fn local_path(path: &str, field: &str, errors: &mut Errors) {
    let mut refuse = |why| errors.push(FieldError::invalid(field, &json!(path), why));
    if path.starts_with('/') {
        refuse("must be a relative path");
    }
    if path.split('/').any(|part| part == "..") {
        refuse("must not contain '..'");
    }
    if path.starts_with("..") && !path.starts_with("../") {
        refuse("must not start with '..'");
    }
}
