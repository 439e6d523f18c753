//! Rules of environment variables.

use serde_json::{Value, json};

use super::{Errors, list, required, text};
use crate::validation::{FieldError, at, names};

/// The error for names of variables.
const NAME_MESSAGE: &str = "a valid environment variable name must consist only of printable ASCII \
     characters other than '='";

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

/// Upstream: `ValidateEnv`.
pub(super) fn validate(container: &Value, path: &str, errors: &mut Errors) {
    for (i, variable) in list(container, "env").enumerate() {
        let path = format!("{path}.env[{i}]");
        let name = text(variable, "name");
        required(variable, "name", &path, errors);
        if name.chars().any(|c| c == '=' || !(' '..='~').contains(&c)) {
            let field = format!("{path}.name");
            errors.push(FieldError::invalid(field, &json!(name), NAME_MESSAGE));
        }
        if let Some(source) = at(variable, "/valueFrom") {
            let has_value = !text(variable, "value").is_empty();
            value_from(source, has_value, &format!("{path}.valueFrom"), errors);
        }
    }
}

/// Upstream: `ValidateEnvFrom`.
pub(super) fn sources(container: &Value, path: &str, errors: &mut Errors) {
    let field = format!("{path}.envFrom");
    for (i, variables) in list(container, "envFrom").enumerate() {
        let path = format!("{field}[{i}]");
        let prefix = text(variables, "prefix");
        if prefix
            .chars()
            .any(|c| c == '=' || !(' '..='~').contains(&c))
        {
            let field = format!("{path}.prefix");
            errors.push(FieldError::invalid(field, &json!(prefix), NAME_MESSAGE));
        }
        let mut found = 0;
        for member in ["configMapRef", "secretRef"] {
            if let Some(source) = variables.get(member).filter(|source| !source.is_null()) {
                found += 1;
                required(source, "name", &format!("{path}.{member}"), errors);
            }
        }
        let detail = match found {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(field.as_str(), &json!(""), detail));
    }
}

/// Upstream: `validateEnvVarValueFrom`.
fn value_from(source: &Value, has_value: bool, path: &str, errors: &mut Errors) {
    let given = SOURCES.map(|member| at(source, &format!("/{member}")));
    for (member, found) in SOURCES.iter().zip(given) {
        let Some(found) = found else { continue };
        let path = format!("{path}.{member}");
        match *member {
            "fieldRef" => field_reference(found, &path, errors),
            "resourceFieldRef" => required(found, "resource", &path, errors),
            "configMapKeyRef" | "secretKeyRef" => key_reference(found, &path, errors),
            _ => {}
        }
    }
    let detail = match given.iter().flatten().count() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(path, &json!(""), detail));
}

/// Upstream: `validateObjectFieldSelector`.
fn field_reference(found: &Value, path: &str, errors: &mut Errors) {
    let field = format!("{path}.fieldPath");
    let shown = text(found, "fieldPath");
    if shown.is_empty() {
        errors.push(FieldError::required(field, ""));
        return;
    }
    if let Some((of, key)) = shown.strip_suffix("']").and_then(|s| s.split_once("['")) {
        let key = if of == "metadata.annotations" {
            key.to_lowercase()
        } else {
            key.to_owned()
        };
        match of {
            "metadata.annotations" | "metadata.labels" => {
                for message in names::qualified_name(&key) {
                    errors.push(FieldError::invalid(path, &json!(key), &message));
                }
            }
            of => errors.push(FieldError::invalid(
                path,
                &json!(of),
                "does not support subscript",
            )),
        }
        return;
    }
    let inner = if shown == "spec.host" {
        "spec.nodeName"
    } else {
        shown
    };
    if FIELDS.contains(&inner) {
        return;
    }
    errors.push(if OTHER_FIELDS.contains(&inner) {
        FieldError::not_supported(field, &json!(inner), &FIELDS)
    } else {
        let detail = format!("error converting fieldPath: field label not supported: {shown}");
        FieldError::invalid(field, &json!(shown), &detail)
    });
}

/// Upstream: `validateConfigMapKeySelector`, `validateSecretKeySelector`.
fn key_reference(found: &Value, path: &str, errors: &mut Errors) {
    let name = text(found, "name");
    for message in names::dns_subdomain(name) {
        errors.push(FieldError::invalid(
            format!("{path}.name"),
            &json!(name),
            message,
        ));
    }
    required(found, "key", path, errors);
    let key = text(found, "key");
    if !key.is_empty() {
        for message in names::config_key(key) {
            errors.push(FieldError::invalid(
                format!("{path}.key"),
                &json!(key),
                message,
            ));
        }
    }
}
