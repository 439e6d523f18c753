//! Rules of the smaller kinds.

use serde_json::{Value, json};

use super::{FieldError, Subject, at, not_negative};
use crate::object::compact;

pub(super) fn controller_revision(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let new = subject.new;
    let printed = new.data.as_deref().map(compact).unwrap_or_default();
    match subject.old {
        None if new.data.is_none() => {
            errors.push(FieldError::required("data", "data is mandatory"));
        }
        None if !printed.starts_with('{') => {
            let detail = "data must be a valid JSON object";
            errors.push(FieldError::invalid_text("data", &printed, detail));
        }
        Some(old) if new.data != old.data => {
            errors.push(FieldError::invalid_text(
                "data",
                &printed,
                "field is immutable",
            ));
        }
        _ => {}
    }
    not_negative(&new.value, "/revision", "revision", errors);
}

pub(super) fn lease(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let value = &subject.new.value;
    if let Some(duration) = at(value, "/spec/leaseDurationSeconds")
        && duration.as_i64().is_some_and(|n| n <= 0)
    {
        let field = "spec.leaseDurationSeconds";
        errors.push(FieldError::invalid(
            field,
            duration,
            "must be greater than 0",
        ));
    }
    not_negative(
        value,
        "/spec/leaseTransitions",
        "spec.leaseTransitions",
        errors,
    );
}

pub(super) fn event(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let value = &subject.new.value;
    let regarding = value
        .pointer("/involvedObject/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let namespace = subject.new.metadata().namespace();
    if !regarding.is_empty() && regarding != namespace {
        errors.push(FieldError::invalid(
            "involvedObject.namespace",
            &json!(regarding),
            "does not match event.namespace",
        ));
    }
}

pub(super) fn pod_disruption_budget(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let spec = subject.new.value.get("spec").unwrap_or(&Value::Null);
    if at(spec, "/minAvailable").is_some() && at(spec, "/maxUnavailable").is_some() {
        errors.push(FieldError::invalid(
            "spec",
            spec,
            "minAvailable and maxUnavailable cannot be both set",
        ));
    }
}

pub(super) fn service(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let value = &subject.new.value;
    let headless = value.pointer("/spec/clusterIP") == Some(&json!("None"));
    let external = value.pointer("/spec/type") == Some(&json!("ExternalName"));
    let ports = at(value, "/spec/ports").and_then(Value::as_array);
    if ports.is_none_or(Vec::is_empty) && !headless && !external {
        errors.push(FieldError::required("spec.ports", ""));
    }
}
