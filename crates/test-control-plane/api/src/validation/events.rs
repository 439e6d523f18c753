//! Rules of events, which depend on the group of the request.

use serde_json::{Value, json};

use super::Subject;
use super::engine::{Errors, Place};
use crate::kinds::Trait;
use crate::members::{number_at, text_at};
use crate::status::FieldError;

/// Validates an event, which the two groups do differently.
pub(super) fn event(subject: Subject<'_>, place: &Place<'_>, errors: &mut Errors) {
    let is_new_form = subject.served.has(Trait::View);
    old_form(subject, errors);
    let block = if is_new_form {
        "Event/new"
    } else {
        "Event/old"
    };
    place.check(block, errors);
    place.check("Event/common", errors);
    if !is_new_form {
        return;
    }
    if place.old.is_none() {
        new_form(place.value, errors);
    } else {
        if place.member("series").is_changed() {
            series(place.value, errors);
        }
        place.check("Event/immutable", errors);
    }
}

/// Upstream: `legacyValidateEvent`.
fn old_form(subject: Subject<'_>, errors: &mut Errors) {
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
}

/// Upstream: `ValidateEventCreate`.
fn new_form(value: &Value, errors: &mut Errors) {
    series(value, errors);
    let text = |pointer: &str| text_at(value, pointer);
    if text("/eventTime").is_empty() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let found = text("/type");
    if !matches!(found, "Normal" | "Warning") {
        let detail = format!("has invalid value: {found}");
        errors.push(FieldError::invalid("type", &json!(""), &detail));
    }
    let count = number_at(value, "/count");
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
fn series(event: &Value, errors: &mut Errors) {
    let Some(series) = event.get("series").filter(|series| !series.is_null()) else {
        return;
    };
    let count = number_at(series, "/count");
    if count < 2 {
        let detail = "should be at least 2";
        errors.push(FieldError::invalid("series.count", &json!(""), detail));
    }
    if series.get("lastObservedTime").is_none_or(Value::is_null) {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
}

/// Reports a text that is too long as invalid.
pub(super) fn longest(value: &Place<'_>, args: &[&str], _: &str, errors: &mut Errors) {
    let max = args.first().and_then(|max| max.parse::<usize>().ok());
    if let Some(max) = max.filter(|max| value.text().len() > *max) {
        let detail = format!("can have at most {max} characters");
        errors.push(value.invalid_as(&json!(""), &detail));
    }
}
