//! Rules of namespaces.

use serde_json::json;

use super::place::{Errors, Place};
use super::{Subject, names};
use crate::status::FieldError;

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
