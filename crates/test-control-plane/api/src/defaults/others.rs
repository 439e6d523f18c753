//! Defaults of the kinds that need only a few.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::default_text;
use crate::members::object_mut;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Secrets: the default type, and the write-only `stringData`.
pub(super) fn secret(value: &mut Value) {
    let Some(map) = value.as_object_mut() else {
        return;
    };
    default_text(map, "type", "Opaque");
    let Some(Value::Object(texts)) = map.remove("stringData") else {
        return;
    };
    if texts.is_empty() {
        return;
    }
    let data = map.entry("data").or_insert_with(|| json!({}));
    if data.is_null() {
        *data = json!({});
    }
    if let Some(data) = data.as_object_mut() {
        for (key, text) in texts {
            let text = text.as_str().unwrap_or_default();
            data.insert(key, json!(STANDARD.encode(text)));
        }
    }
}

/// Persistent volumes.
pub(super) fn volume(value: &mut Value) {
    default_text(object_mut(value, "status"), "phase", "Pending");
    let spec = object_mut(value, "spec");
    default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    default_text(spec, "volumeMode", "Filesystem");
    if let Some(path) = spec.get_mut("hostPath").and_then(Value::as_object_mut) {
        path.entry("type").or_insert(json!(""));
    }
    if let Some(disk) = spec.get_mut("iscsi").and_then(Value::as_object_mut) {
        default_text(disk, "iscsiInterface", "default");
    }
}

/// Namespaces: the phase and the name label.
pub(super) fn namespace(value: &mut Value) {
    default_text(object_mut(value, "status"), "phase", "Active");
    object_mut(value, "spec");
    let name = value.pointer("/metadata/name").cloned();
    let Some(name) = name.filter(Value::is_string) else {
        return;
    };
    let labels = object_mut(&mut value["metadata"], "labels");
    labels.insert("kubernetes.io/metadata.name".to_owned(), name);
}

/// Nodes: `allocatable` defaults to `capacity`.
pub(super) fn node(value: &mut Value) {
    let status = object_mut(value, "status");
    if let Some(capacity) = status.get("capacity").cloned()
        && status.get("allocatable").is_none_or(Value::is_null)
    {
        status.insert("allocatable".to_owned(), capacity);
    }
}

/// Limit ranges: a limit defaults to the maximum, a request to the default limit or else to the
/// minimum.
///
/// Upstream: `SetDefaults_LimitRangeItem`.
pub(super) fn limit_range(value: &mut Value) {
    for item in list(value, "/spec/limits") {
        if item.get("type") != Some(&json!("Container")) {
            continue;
        }
        for (into, from) in [
            ("default", "max"),
            ("defaultRequest", "default"),
            ("defaultRequest", "min"),
        ] {
            let Some(Value::Object(known)) = item.get(from).cloned() else {
                continue;
            };
            let into = item.entry(into).or_insert_with(|| json!({}));
            if let Some(into) = into.as_object_mut() {
                for (resource, quantity) in known {
                    into.entry(resource).or_insert(quantity);
                }
            }
        }
    }
}

/// Endpoints: the protocol of ports defaults to TCP.
pub(super) fn endpoints(value: &mut Value) {
    for subset in list(value, "/subsets") {
        let ports = subset.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            default_text(port, "protocol", "TCP");
        }
    }
}

/// Role bindings: the API groups of the role and of the subjects.
pub(super) fn role_binding(value: &mut Value) {
    if let Some(role) = value.get_mut("roleRef").and_then(Value::as_object_mut) {
        default_text(role, "apiGroup", RBAC);
    }
    for subject in list(value, "/subjects") {
        if matches!(
            subject.get("kind").and_then(Value::as_str),
            Some("User" | "Group")
        ) {
            default_text(subject, "apiGroup", RBAC);
        }
    }
}

fn list<'a>(
    value: &'a mut Value,
    pointer: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    value
        .pointer_mut(pointer)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}
