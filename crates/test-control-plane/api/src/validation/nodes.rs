//! Rules of nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::place::{Errors, Place};
use super::{names, rules};
use crate::status::FieldError;

/// Validates taints. Errors name a path in the metadata, as in the reference.
///
/// Upstream: `validateNodeTaints`, called by `ValidateNode`
pub(super) fn taints(taints: &Place<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for taint in taints.elements() {
        rules::check("Taint", &taint, errors);
        let [key, value, effect] = ["key", "value", "effect"].map(|member| taint.text_of(member));
        if !seen.insert((effect, key)) {
            // The internal type has no JSON names, so its Go names appear.
            let added = taint.value.get("timeAdded").unwrap_or(&Value::Null);
            let text = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{added}}}: taints must be \
                 unique by key and effect pair",
                json!(key),
                json!(value),
                json!(effect),
            );
            errors.push(FieldError::duplicate_text(taint.path(), &text));
        }
    }
}

pub(super) fn taint_value(value: &Place<'_>, errors: &mut Errors) {
    let wrong = names::label_value(value.text());
    if !wrong.is_empty() {
        value.invalid_for([wrong.join(";")], errors);
    }
}
