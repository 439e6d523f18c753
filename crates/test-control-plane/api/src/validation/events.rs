//! Rules of events, which depend on the group of the request.

use serde_json::{Value, json};

use super::{FieldError, Subject, names};
use crate::kinds::Trait;

/// Maximum length of reporter names, reasons and actions, in bytes.
const TEXT_MAX: usize = 128;

/// Maximum length of a message, in bytes.
const MESSAGE_MAX: usize = 1024;

/// Members that can't change through events.k8s.io: their name in messages and their pointer.
const IMMUTABLE: [(&str, &str); 14] = [
    ("involvedObject", "/involvedObject"),
    ("reason", "/reason"),
    ("message", "/message"),
    ("source", "/source"),
    ("firstTimestamp", "/firstTimestamp"),
    ("lastTimestamp", "/lastTimestamp"),
    ("count", "/count"),
    // The reference checks this member twice.
    ("reason", "/reason"),
    ("type", "/type"),
    ("eventTime", "/eventTime"),
    ("action", "/action"),
    ("related", "/related"),
    ("reportingController", "/reportingComponent"),
    ("reportingInstance", "/reportingInstance"),
];

pub(super) fn event(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let is_new_form = subject.served.has(Trait::View);
    old_form(subject, is_new_form, errors);
    if !is_new_form {
        return;
    }
    match subject.old {
        None => new_form(&subject.new.value, errors),
        Some(old) => {
            if subject.new.value.get("series") != old.value.get("series") {
                series(&subject.new.value, errors);
            }
            for (field, pointer) in IMMUTABLE {
                let value = subject.new.value.pointer(pointer).unwrap_or(&Value::Null);
                if value != old.value.pointer(pointer).unwrap_or(&Value::Null) {
                    errors.push(FieldError::invalid(field, value, "field is immutable"));
                }
            }
        }
    }
}

/// Upstream: `legacyValidateEvent`.
fn old_form(subject: Subject<'_>, is_new_form: bool, errors: &mut Vec<FieldError>) {
    let text = |pointer: &str| subject.new.text(pointer).unwrap_or_default();
    let namespace = subject.new.metadata().namespace();
    let regarding = text("/involvedObject/namespace");
    let has_time = !text("/eventTime").is_empty();
    let matches = match (regarding, has_time) {
        ("", false) => matches!(namespace, "" | "default"),
        ("", true) => matches!(namespace, "default" | "kube-system"),
        (_, false) => regarding == namespace,
        (_, true) => true,
    };
    if !matches {
        errors.push(FieldError::invalid(
            "involvedObject.namespace",
            &json!(regarding),
            "does not match event.namespace",
        ));
    }
    if !has_time {
        return;
    }
    let controller = if is_new_form {
        "reportingController"
    } else {
        "reportingComponent"
    };
    let reporter = text("/reportingComponent");
    if reporter.is_empty() {
        errors.push(FieldError::required(controller, ""));
    }
    for message in names::qualified_name(reporter) {
        errors.push(FieldError::invalid(controller, &json!(reporter), &message));
    }
    for (field, pointer) in [
        ("reportingInstance", "/reportingInstance"),
        ("action", "/action"),
        ("reason", "/reason"),
    ] {
        let value = text(pointer);
        if value.is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        too_long(field, value, TEXT_MAX, errors);
    }
    too_long("message", text("/message"), MESSAGE_MAX, errors);
}

fn too_long(field: &str, value: &str, max: usize, errors: &mut Vec<FieldError>) {
    if value.len() > max {
        let detail = format!("can have at most {max} characters");
        errors.push(FieldError::invalid(field, &json!(""), &detail));
    }
}

/// Upstream: `ValidateEventCreate`.
fn new_form(value: &Value, errors: &mut Vec<FieldError>) {
    series(value, errors);
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    if text("/eventTime").is_empty() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let found = text("/type");
    if !matches!(found, "Normal" | "Warning") {
        let detail = format!("has invalid value: {found}");
        errors.push(FieldError::invalid("type", &json!(""), &detail));
    }
    let count = value.get("count").and_then(Value::as_i64).unwrap_or(0);
    let is_set = [
        ("firstTimestamp", !text("/firstTimestamp").is_empty()),
        ("lastTimestamp", !text("/lastTimestamp").is_empty()),
        ("count", count != 0),
        (
            "source",
            !text("/source/component").is_empty() || !text("/source/host").is_empty(),
        ),
    ];
    for (field, _) in is_set.iter().filter(|(_, is_set)| *is_set) {
        errors.push(FieldError::invalid(*field, &json!(""), "needs to be unset"));
    }
}

/// Upstream: `validateV1EventSeries`.
fn series(event: &Value, errors: &mut Vec<FieldError>) {
    let Some(series) = event.get("series").filter(|series| !series.is_null()) else {
        return;
    };
    let count = series.get("count").and_then(Value::as_i64).unwrap_or(0);
    if count < 2 {
        let detail = "should be at least 2";
        errors.push(FieldError::invalid("series.count", &json!(""), detail));
    }
    if series.get("lastObservedTime").is_none_or(Value::is_null) {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
}
