//! Rules of pods.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{FieldError, Subject, inner, pod_template};
use crate::kinds::Subresource;
use crate::kinds::Target;
use crate::members::{list, list_at, text, text_at};

const IMMUTABLE: &str = "pod updates may not change fields other than \
     `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
     `spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn validate(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    if subject.target == Target::Part(Subresource::Status)
        && let Some(old) = subject.old
    {
        status(&subject.new.value, &old.value, errors);
    }
    if subject.target != Target::Object {
        return;
    }
    let null = Value::Null;
    let spec = subject.new.value.get("spec").unwrap_or(&null);
    pod_template::validate_spec(spec, "spec", &BTreeSet::new(), errors);
    pod_template::validate_images(spec, errors);
    if let Some(old) = subject.old {
        update(spec, old.value.get("spec").unwrap_or(&null), errors);
    }
}

/// Upstream: `ValidatePodStatusUpdate`, of which these parts are here.
fn status(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let class = |pod: &Value| text_at(pod, "/status/qosClass").to_owned();
    let (now, before) = (class(new), class(old));
    if now != before {
        let detail = "field is immutable";
        errors.push(FieldError::invalid("status.qosClass", &json!(now), detail));
    }
    for (member, name) in [("podIPs", "status.podIPs"), ("hostIPs", "status.hostIPs")] {
        let pointer = format!("/status/{member}");
        for (i, ip) in list_at(new, &pointer).enumerate() {
            let ip = text(ip, "ip");
            if ip.parse::<IpAddr>().is_err() {
                let field = format!("{name}[{i}]");
                let detail = pod_template::IP_MESSAGE;
                errors.push(FieldError::invalid(field, &json!(ip), detail));
            }
        }
    }
}

/// Upstream: `ValidatePodUpdate`.
fn update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    for (member, noun) in [
        ("containers", "containers"),
        ("initContainers", "init containers"),
    ] {
        if list(new, member).len() != list(old, member).len() {
            errors.push(FieldError::forbidden(
                format!("spec.{member}"),
                &format!("pod updates may not add or remove {noun}"),
            ));
            return;
        }
    }
    deadline(new, old, errors);
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
        errors.push(FieldError::forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    }
    let masked = without_allowed_changes(new, old);
    if masked != *old {
        let difference = inner::diff("PodSpec", old, &masked);
        errors.push(FieldError::forbidden(
            "spec",
            &format!("{IMMUTABLE}\n{difference}"),
        ));
    }
}

fn deadline(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let field = "spec.activeDeadlineSeconds";
    let of = |spec: &Value| spec.get("activeDeadlineSeconds").and_then(Value::as_i64);
    match (of(new), of(old)) {
        (Some(now), _) if !(1..=i64::from(i32::MAX)).contains(&now) => {
            let detail = "must be between 1 and 2147483647, inclusive";
            errors.push(FieldError::invalid(field, &json!(now), detail));
        }
        (Some(now), Some(before)) if now > before => {
            let detail = "must be less than or equal to previous value";
            errors.push(FieldError::invalid(field, &json!(now), detail));
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(field, &Value::Null, detail));
        }
        _ => {}
    }
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
        crate::object::set_or_remove(map, member, old.get(member).cloned());
    }
}
