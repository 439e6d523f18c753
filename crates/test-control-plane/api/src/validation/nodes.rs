//! Rules of nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{FieldError, Subject, at, names};
use crate::members::text_at;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Upstream: `validateNodeTaints`, of which `ValidateNode` says that they stand in the metadata.
pub(super) fn node(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let taints = at(&subject.new.value, "/spec/taints").and_then(Value::as_array);
    let mut seen = BTreeSet::new();
    for (i, taint) in taints.into_iter().flatten().enumerate() {
        let path = format!("metadata.taints[{i}]");
        let [key, value, effect] = ["/key", "/value", "/effect"].map(|m| text_at(taint, m));
        let wrong = names::qualified_name(key).into_iter();
        let key_field = format!("{path}.key");
        errors.extend(wrong.map(|why| FieldError::invalid(key_field.as_str(), &json!(key), &why)));
        let wrong = names::label_value(value).join(";");
        if !wrong.is_empty() {
            let field = format!("{path}.value");
            errors.push(FieldError::invalid(field, &json!(value), &wrong));
        }
        let field = format!("{path}.effect");
        if effect.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if !EFFECTS.contains(&effect) {
            let effect = json!(effect);
            errors.push(FieldError::not_supported(field, &effect, &EFFECTS));
        }
        if !seen.insert((effect, key)) {
            // The internal type has no JSON names, so its Go names appear.
            let added = taint.get("timeAdded").unwrap_or(&Value::Null);
            let text = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{added}}}: taints must be \
                 unique by key and effect pair",
                json!(key),
                json!(value),
                json!(effect),
            );
            errors.push(FieldError::duplicate_text(path, &text));
        }
    }
}
