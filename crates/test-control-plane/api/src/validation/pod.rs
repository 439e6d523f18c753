//! Rules of pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::place::{Errors, Place};
use super::{inner, pod_template, rules};
use crate::members::list;

const IMMUTABLE: &str = "pod updates may not change fields other than \
     `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
     `spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn pod_spec(spec: &Place<'_>, errors: &mut Errors) {
    pod_template::validate_spec(spec, &BTreeSet::new(), errors);
}

pub(super) fn qos_class(class: &Place<'_>, errors: &mut Errors) {
    if class.old.and_then(Value::as_str).unwrap_or_default() != class.text() {
        class.invalid_for(["field is immutable"], errors);
    }
}

/// Validates an address, whose errors name the whole element.
pub(super) fn status_ip(address: &Place<'_>, errors: &mut Errors) {
    let ip = address.value.get("ip").unwrap_or(&Value::Null);
    rules::check("PodIP", &address.instead(ip), errors);
}

/// Upstream: `ValidatePodUpdate`.
pub(super) fn pod_update(spec: &Place<'_>, errors: &mut Errors) {
    let (new, Some(old)) = (spec.value, spec.old) else {
        return;
    };
    for (member, noun) in [
        ("containers", "containers"),
        ("initContainers", "init containers"),
    ] {
        if list(new, member).len() != list(old, member).len() {
            let detail = format!("pod updates may not add or remove {noun}");
            errors.push(spec.member(member).forbidden(&detail));
            return;
        }
    }
    deadline(&spec.member("activeDeadlineSeconds"), errors);
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(map) = toleration.as_object_mut() {
            map.remove("tolerationSeconds");
        }
        toleration
    };
    let now: Vec<Value> = list(new, "tolerations").map(without_seconds).collect();
    let are_kept =
        list(old, "tolerations").all(|toleration| now.contains(&without_seconds(toleration)));
    if !are_kept {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(spec.member("tolerations").forbidden(detail));
    }
    let masked = without_allowed_changes(new, old);
    if masked != *old {
        let difference = inner::diff("PodSpec", old, &masked);
        errors.push(spec.forbidden(&format!("{IMMUTABLE}\n{difference}")));
    }
}

fn deadline(seconds: &Place<'_>, errors: &mut Errors) {
    let before = seconds.old.and_then(Value::as_i64);
    let detail = match (seconds.value.as_i64(), before) {
        (Some(now), _) if !(1..=i64::from(i32::MAX)).contains(&now) => {
            "must be between 1 and 2147483647, inclusive"
        }
        (Some(now), Some(before)) if now > before => "must be less than or equal to previous value",
        (None, Some(_)) => "must not update from a positive integer to nil value",
        _ => return,
    };
    errors.push(seconds.invalid(detail));
}

/// Returns the new spec with its mutable members reset to their old values.
fn without_allowed_changes(new: &Value, old: &Value) -> Value {
    let mut masked = new.clone();
    for member in ["containers", "initContainers"] {
        let (Some(new_list), Some(old_list)) = (
            masked.get_mut(member).and_then(Value::as_array_mut),
            old.get(member).and_then(Value::as_array),
        ) else {
            continue;
        };
        for (container, old) in new_list.iter_mut().zip(old_list) {
            keep(container, old, "image");
        }
    }
    for member in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(&mut masked, old, member);
    }
    let grace = |spec: &Value| {
        spec.get("terminationGracePeriodSeconds")
            .and_then(Value::as_i64)
    };
    if grace(old).is_some_and(|s| s < 0) && grace(new) == Some(1) {
        keep(&mut masked, old, "terminationGracePeriodSeconds");
    }
    if list(old, "schedulingGates").len() > 0 {
        for member in ["nodeSelector", "affinity"] {
            keep(&mut masked, old, member);
        }
    }
    masked
}

fn keep(masked: &mut Value, old: &Value, member: &str) {
    if let Some(map) = masked.as_object_mut() {
        crate::members::set_or_remove(map, member, old.get(member).cloned());
    }
}
