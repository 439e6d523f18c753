//! Rules of pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{FieldError, Subject, at, names, pod_template};
use crate::route::Target;

const IMMUTABLE: &str = "pod updates may not change fields other than \
     `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
     `spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn validate(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    if subject.target != Target::Object {
        return;
    }
    let null = Value::Null;
    let spec = subject.new.value.get("spec").unwrap_or(&null);
    let Some(old) = subject.old else {
        pod_template::validate_spec(spec, "spec", &BTreeSet::new(), errors);
        for member in ["hostname", "subdomain"] {
            if let Some(name) = at(spec, &format!("/{member}"))
                && let Some(text) = name.as_str().filter(|text| !text.is_empty())
            {
                for message in names::dns_label(text) {
                    errors.push(FieldError::invalid(format!("spec.{member}"), name, message));
                }
            }
        }
        return;
    };
    if !only_allowed_changes(spec, old.value.get("spec").unwrap_or(&null)) {
        errors.push(FieldError::forbidden("spec", IMMUTABLE));
    }
}

/// Whether `new` differs from `old` in mutable fields only.
fn only_allowed_changes(new: &Value, old: &Value) -> bool {
    let mut masked = new.clone();
    for member in ["containers", "initContainers"] {
        let (Some(new_list), Some(old_list)) = (
            masked.get_mut(member).and_then(Value::as_array_mut),
            old.get(member).and_then(Value::as_array),
        ) else {
            continue;
        };
        for (container, old) in new_list.iter_mut().zip(old_list) {
            if let Some(image) = old.get("image") {
                container["image"] = image.clone();
            }
        }
    }
    let tolerations = |spec: &Value| -> Vec<Value> {
        let list = spec.get("tolerations").and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let (now, before) = (tolerations(new), tolerations(old));
    if before.iter().all(|toleration| now.contains(toleration)) {
        keep(&mut masked, old, "tolerations");
    }
    keep(&mut masked, old, "activeDeadlineSeconds");
    let grace = |spec: &Value| {
        spec.get("terminationGracePeriodSeconds")
            .and_then(Value::as_i64)
    };
    if grace(old).is_some_and(|s| s < 0) && grace(new) == Some(1) {
        keep(&mut masked, old, "terminationGracePeriodSeconds");
    }
    let gated = |spec: &Value| {
        let gates = spec.get("schedulingGates").and_then(Value::as_array);
        gates.is_some_and(|gates| !gates.is_empty())
    };
    if gated(old) {
        for member in ["schedulingGates", "nodeSelector", "affinity"] {
            keep(&mut masked, old, member);
        }
    }
    masked == *old
}

fn keep(masked: &mut Value, old: &Value, member: &str) {
    if let Some(map) = masked.as_object_mut() {
        crate::object::set_or_remove(map, member, old.get(member).cloned());
    }
}
