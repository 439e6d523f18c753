//! Rules of a pod's spec, alone or inside a template.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{FieldError, at, names};
use crate::members::{list, text};

/// Validates the spec of a pod. `extra_volumes` are volumes that exist although the spec doesn't
/// list them (those of claim templates).
pub(super) fn validate_spec(
    spec: &Value,
    path: &str,
    extra_volumes: &BTreeSet<&str>,
    errors: &mut Vec<FieldError>,
) {
    let mut volumes = extra_volumes.clone();
    let mut seen = BTreeSet::new();
    for (i, volume) in list(spec, "volumes").enumerate() {
        let field = format!("{path}.volumes[{i}].name");
        let name = text(volume, "name");
        named(name, &field, &mut seen, errors);
        volumes.insert(name);
    }
    if list(spec, "containers").next().is_none() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut seen = BTreeSet::new();
    for member in ["containers", "initContainers"] {
        for (i, container) in list(spec, member).enumerate() {
            let field = format!("{path}.{member}[{i}]");
            validate_container(container, &field, &volumes, &mut seen, errors);
        }
    }
    if let Some(policy) = at(spec, "/restartPolicy") {
        let known = ["Always", "OnFailure", "Never"];
        if !known.iter().any(|k| policy == k) {
            let field = format!("{path}.restartPolicy");
            errors.push(FieldError::not_supported(field, policy, &known));
        }
    }
}

fn validate_container<'a>(
    container: &'a Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    let field = format!("{path}.name");
    named(text(container, "name"), &field, seen, errors);
    if text(container, "image").is_empty() {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    }
    for (i, port) in list(container, "ports").enumerate() {
        let number = port
            .get("containerPort")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        let field = format!("{path}.ports[{i}].containerPort");
        if number == 0 {
            errors.push(FieldError::required(field, ""));
        } else if !(1..=65535).contains(&number) {
            let detail = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(field, &json!(number), detail));
        }
    }
    let mut paths = BTreeSet::new();
    for (i, mount) in list(container, "volumeMounts").enumerate() {
        let name = text(mount, "name");
        let field = format!("{path}.volumeMounts[{i}]");
        if name.is_empty() {
            errors.push(FieldError::required(format!("{field}.name"), ""));
        } else if !volumes.contains(name) {
            errors.push(FieldError::not_found(format!("{field}.name"), &json!(name)));
        }
        let mount_path = text(mount, "mountPath");
        if mount_path.is_empty() {
            errors.push(FieldError::required(format!("{field}.mountPath"), ""));
        } else if !paths.insert(mount_path) {
            errors.push(FieldError::invalid(
                format!("{field}.mountPath"),
                &json!(mount_path),
                "must be unique",
            ));
        }
    }
}

fn named<'a>(
    name: &'a str,
    field: &str,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    if name.is_empty() {
        errors.push(FieldError::required(field, ""));
        return;
    }
    for message in names::dns_label(name) {
        errors.push(FieldError::invalid(field, &json!(name), message));
    }
    if !seen.insert(name) {
        errors.push(FieldError::duplicate(field, &json!(name)));
    }
}
