//! Rules of namespaces.

use serde_json::{Value, json};

use super::{FieldError, Subject, names};
use crate::kinds::Subresource;
use crate::kinds::Target;

pub(super) fn namespace(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let value = &subject.new.value;
    let finalizers = value.pointer("/spec/finalizers").and_then(Value::as_array);
    for finalizer in finalizers.into_iter().flatten() {
        let name = finalizer.as_str().unwrap_or_default();
        for message in names::qualified_name(name) {
            errors.push(FieldError::invalid("spec.finalizers", finalizer, &message));
        }
        if !name.contains('/') && name != "kubernetes" {
            errors.push(FieldError::invalid(
                "spec.finalizers",
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
    if subject.target != Target::Part(Subresource::Status) {
        return;
    }
    let phase = subject.new.text("/status/phase").unwrap_or_default();
    let detail = match (subject.new.metadata().is_deleting(), phase) {
        (false, "Active") | (true, "Terminating") => return,
        (false, _) => "may only be 'Active' if `deletionTimestamp` is empty",
        (true, _) => "may only be 'Terminating' if `deletionTimestamp` is not empty",
    };
    errors.push(FieldError::invalid("status.Phase", &json!(phase), detail));
}
