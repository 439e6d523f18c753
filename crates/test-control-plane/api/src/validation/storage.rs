//! Rules of storage classes.

use serde_json::{Value, json};

use super::{FieldError, Subject, at, names};
use crate::members::text_at;

const RECLAIM_POLICIES: [&str; 2] = ["Delete", "Retain"];
const BINDING_MODES: [&str; 2] = ["Immediate", "WaitForFirstConsumer"];

/// Upstream: `ValidateStorageClass` and `ValidateStorageClassUpdate`
pub(super) fn storage_class(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let class = &subject.new.value;
    let provisioner = text_at(class, "/provisioner");
    if provisioner.is_empty() {
        errors.push(FieldError::required("provisioner", ""));
    } else {
        for message in names::qualified_name(&provisioner.to_lowercase()) {
            let value = json!(provisioner);
            errors.push(FieldError::invalid("provisioner", &value, &message));
        }
    }
    let parameters = at(class, "/parameters").and_then(Value::as_object);
    if parameters.is_some_and(|parameters| parameters.contains_key("")) {
        let detail = "field can not be empty";
        errors.push(FieldError::invalid("parameters", &json!(""), detail));
    }
    for (member, known) in [
        ("reclaimPolicy", RECLAIM_POLICIES),
        ("volumeBindingMode", BINDING_MODES),
    ] {
        if let Some(value) = class.get(member)
            && !known.iter().any(|known| value == known)
        {
            errors.push(FieldError::not_supported(member, value, &known));
        }
    }
    let Some(old) = subject.old else {
        return;
    };
    let changed = |member: &str| class.get(member) != old.value.get(member);
    for member in ["parameters", "provisioner", "reclaimPolicy"] {
        if changed(member) {
            let detail = format!("updates to {member} are forbidden.");
            errors.push(FieldError::forbidden(member, &detail));
        }
    }
    if changed("volumeBindingMode") {
        let value = class.get("volumeBindingMode").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(
            "volumeBindingMode",
            value,
            "field is immutable",
        ));
    }
}
