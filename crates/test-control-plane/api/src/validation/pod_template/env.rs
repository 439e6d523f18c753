//! Rules of environment variables.

use serde_json::json;

use crate::status::FieldError;
use crate::validation::place::{Errors, Place};
use crate::validation::{names, rules};

/// The sources of a value.
const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

/// The fields that variables can reference.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Existing fields that variables can't reference.
const OTHER_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
];

/// Upstream: `ValidateEnvFrom`.
pub(in crate::validation) fn env_from(sources: &Place<'_>, errors: &mut Errors) {
    for source in sources.elements() {
        rules::check("EnvFromSource", &source, errors);
        let members = ["configMapRef", "secretRef"];
        let found = members
            .iter()
            .filter(|member| source.member(member).is_present());
        let detail = match found.count() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(sources.path(), &json!(""), detail));
    }
}

/// Upstream: `validateEnvVarValueFrom`.
pub(in crate::validation) fn env_source(variable: &Place<'_>, errors: &mut Errors) {
    let source = variable.member("valueFrom");
    if !source.is_present() {
        return;
    }
    rules::check("EnvVarSource", &source, errors);
    let found = SOURCES
        .iter()
        .filter(|member| source.member(member).is_present());
    let detail = match found.count() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        _ if !variable.member("value").is_empty() => {
            "may not be specified when `value` is not empty"
        }
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(source.path(), &json!(""), detail));
}

/// Upstream: `validateObjectFieldSelector`.
pub(in crate::validation) fn field_reference(found: &Place<'_>, errors: &mut Errors) {
    let field = found.member("fieldPath");
    let shown = field.text();
    if shown.is_empty() {
        errors.push(field.required(""));
        return;
    }
    if let Some((of, key)) = shown.strip_suffix("']").and_then(|s| s.split_once("['")) {
        let key = match of {
            "metadata.annotations" => key.to_lowercase(),
            _ => key.to_owned(),
        };
        let (value, wrong) = match of {
            "metadata.annotations" | "metadata.labels" => (json!(key), names::qualified_name(&key)),
            of => (json!(of), vec!["does not support subscript".to_owned()]),
        };
        let error = |why: &String| FieldError::invalid(found.path(), &value, why);
        errors.extend(wrong.iter().map(error));
        return;
    }
    let inner = match shown {
        "spec.host" => "spec.nodeName",
        shown => shown,
    };
    if OTHER_FIELDS.contains(&inner) {
        let error = FieldError::not_supported(field.path(), &json!(inner), &FIELDS);
        errors.push(error);
    } else if !FIELDS.contains(&inner) {
        let detail = format!("error converting fieldPath: field label not supported: {shown}");
        errors.push(field.invalid(&detail));
    }
}
