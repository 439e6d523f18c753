//! Rules of the kinds with a pod template, except stateful sets.

use serde_json::{Value, json};

use super::others::count_or_percent;
use super::stateful_set::{Template, selector_and_template};
use super::{FieldError, Subject, at, not_negative};
use crate::kinds::Subresource;
use crate::kinds::Target;

pub(super) fn validate(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let null = Value::Null;
    let value = &subject.new.value;
    if subject.target == Target::Part(Subresource::Status) {
        status(value, errors);
        return;
    }
    let spec = value.get("spec").unwrap_or(&null);
    let old = subject
        .old
        .map(|old| old.value.get("spec").unwrap_or(&null));
    for member in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
        not_negative(
            spec,
            &format!("/{member}"),
            &format!("spec.{member}"),
            errors,
        );
    }
    let noun = match subject.kind.storage {
        "daemonsets" => "daemonset",
        // The reference says "deployment" for replica sets too.
        _ => "deployment",
    };
    let template = Template {
        noun,
        kind: subject.kind.kind,
        selects_by_map: subject.kind.storage == "replicationcontrollers",
    };
    selector_and_template(spec, template, errors);
    match subject.kind.storage {
        "deployments" => deployment(spec, errors),
        "daemonsets" => daemon_set(spec, errors),
        _ => {}
    }
    // The selector of a replication controller may change.
    if let Some(old) = old.filter(|_| subject.kind.storage != "replicationcontrollers")
        && old.get("selector") != spec.get("selector")
    {
        let selector = spec.get("selector").unwrap_or(&null);
        errors.push(FieldError::invalid(
            "spec.selector",
            selector,
            "field is immutable",
        ));
    }
}

fn deployment(spec: &Value, errors: &mut Vec<FieldError>) {
    let kind = spec.pointer("/strategy/type").unwrap_or(&Value::Null);
    let rolling = at(spec, "/strategy/rollingUpdate");
    match kind.as_str() {
        Some("RollingUpdate") => {
            let path = "spec.strategy.rollingUpdate";
            rolling_update(rolling.unwrap_or(&Value::Null), path, errors);
        }
        Some("Recreate") => {
            if rolling.is_some() {
                errors.push(FieldError::forbidden(
                    "spec.strategy.rollingUpdate",
                    "may not be specified when strategy `type` is 'Recreate'",
                ));
            }
        }
        _ => errors.push(FieldError::not_supported(
            "spec.strategy.type",
            kind,
            &["Recreate", "RollingUpdate"],
        )),
    }
    let number = |pointer: &str| at(spec, pointer).and_then(Value::as_i64);
    if let Some(deadline) = number("/progressDeadlineSeconds") {
        let field = "spec.progressDeadlineSeconds";
        if deadline < 0 {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(field, &json!(deadline), detail));
        }
        if deadline <= number("/minReadySeconds").unwrap_or(0) {
            let detail = "must be greater than minReadySeconds";
            errors.push(FieldError::invalid(field, &json!(deadline), detail));
        }
    }
}

fn rolling_update(rolling: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let zero = Value::from(0);
    let of = |member: &str| rolling.get(member).unwrap_or(&zero);
    for member in ["maxUnavailable", "maxSurge"] {
        count_or_percent(of(member), &format!("{path}.{member}"), errors);
    }
    let is_zero = |value: &Value| *value == 0 || *value == "0%";
    if is_zero(of("maxUnavailable")) && is_zero(of("maxSurge")) {
        errors.push(FieldError::invalid(
            format!("{path}.maxUnavailable"),
            of("maxUnavailable"),
            "may not be 0 when `maxSurge` is 0",
        ));
    }
}

fn daemon_set(spec: &Value, errors: &mut Vec<FieldError>) {
    let kind = spec.pointer("/updateStrategy/type").unwrap_or(&Value::Null);
    match kind.as_str() {
        Some("OnDelete") => {}
        Some("RollingUpdate") => {
            let path = "spec.updateStrategy.rollingUpdate";
            match at(spec, "/updateStrategy/rollingUpdate") {
                None => errors.push(FieldError::required(path, "")),
                Some(rolling) => rolling_update(rolling, path, errors),
            }
        }
        _ => {
            // The text of the reference's internal type.
            let rolling = at(spec, "/updateStrategy/rollingUpdate").unwrap_or(&Value::Null);
            errors.push(FieldError::not_supported_text(
                "spec.updateStrategy",
                &format!("{{\"Type\":{kind},\"RollingUpdate\":{rolling}}}"),
                &["RollingUpdate", "OnDelete"],
            ));
        }
    }
}

fn status(value: &Value, errors: &mut Vec<FieldError>) {
    let counters = value.get("status").and_then(Value::as_object);
    for (member, count) in counters.into_iter().flatten() {
        if count.is_number() {
            let pointer = format!("/status/{member}");
            not_negative(value, &pointer, &format!("status.{member}"), errors);
        }
    }
    let number = |member: &str| {
        let count = value.pointer(&format!("/status/{member}"));
        count.and_then(Value::as_i64)
    };
    let Some(replicas) = number("replicas") else {
        return;
    };
    for member in [
        "fullyLabeledReplicas",
        "readyReplicas",
        "updatedReplicas",
        "availableReplicas",
    ] {
        if let Some(count) = number(member).filter(|count| *count > replicas) {
            errors.push(FieldError::invalid(
                format!("status.{member}"),
                &json!(count),
                "cannot be greater than status.replicas",
            ));
        }
    }
}
