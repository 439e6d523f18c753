//! Rules of volumes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Errors, label, list, number, required, text};
use crate::validation::FieldError;

/// The sources that have members which must be there, and those members.
const REQUIRED: &[(&str, &[&str])] = &[
    ("hostPath", &["path"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("configMap", &["name"]),
    ("csi", &["driver"]),
];

/// Validates the volumes; returns the names of those that are as they should be.
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
    let mode = number(found, "defaultMode");
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        let field = format!("{place}.defaultMode");
        errors.push(FieldError::invalid(field, &json!(mode), detail));
    }
    for (i, item) in list(found, "items").enumerate() {
        let path = format!("{place}.items[{i}]");
        if matches!(member.as_str(), "secret" | "configMap") {
            required(item, "key", &path, errors);
        }
        required(item, "path", &path, errors);
    }
    for (member, _) in sources {
        let detail = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(format!("{path}.{member}"), detail));
    }
}
