//! Rules of the smaller kinds.

use kube_apimachinery::json::replace_invalid_utf8;
use serde_json::{Value, json};

use super::Subject;
use super::engine::{Errors, Place};
use super::workloads::selector;
use crate::go::json::held;
use crate::go::json::raw::compact;
use crate::go::names;
use crate::status::FieldError;

/// Validates a revision. The new object is checked before the change.
pub(super) fn controller_revision(subject: Subject<'_>, place: &Place<'_>, errors: &mut Errors) {
    let new = subject.new;
    let printed = new
        .data
        .as_deref()
        .map(|data| compact(&held::release(data)));
    let printed = replace_invalid_utf8(&printed.unwrap_or_default());
    place.check("ControllerRevision", errors);
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
}

/// Rejects the name of a finalizer that no component can own.
pub(super) fn namespace_finalizer(finalizer: &Place<'_>, errors: &mut Errors) {
    let name = finalizer.text();
    finalizer.invalid_for(names::qualified_name(name), errors);
    if !name.contains('/') && name != "kubernetes" {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(finalizer.invalid(detail));
    }
}

/// Checks that the phase agrees with the deletion.
pub(super) fn phase(subject: Subject<'_>, errors: &mut Errors) {
    let phase = subject.new.text("/status/phase").unwrap_or_default();
    let detail = match (subject.new.metadata().is_deleting(), phase) {
        (false, "Active") | (true, "Terminating") => return,
        (false, _) => "may only be 'Active' if `deletionTimestamp` is empty",
        (true, _) => "may only be 'Terminating' if `deletionTimestamp` is not empty",
    };
    errors.push(FieldError::invalid("status.Phase", &json!(phase), detail));
}

/// Rejects a selector that upstream can't read. The error shows no value.
///
/// Upstream: `ValidateClusterRole`
pub(super) fn readable_selector(found: &Place<'_>, errors: &mut Errors) {
    if selector(found.value).is_none() {
        let detail = "invalid label selector.";
        errors.push(found.invalid_as(&Value::Null, detail));
    }
}
