//! Rules of priorities, attachments and webhooks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::engine::{Errors, Place};
use crate::members::text;

/// Maximum priority of a class that a user defines.
const USER_PRIORITY_MAX: i64 = 1_000_000_000;

/// The prefix of the classes of the system.
const SYSTEM_PREFIX: &str = "system-";

/// The classes of the system, with their values.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// Upstream: `ValidatePriorityClass`
pub(super) fn user_priority(class: &Place<'_>, errors: &mut Errors) {
    let name = class.member("metadata.name");
    let value = class.member("value");
    if name.text().starts_with(SYSTEM_PREFIX) {
        if let Some(why) = wrong_system_class(class, name.text()) {
            errors.push(name.forbidden(&format!(
                "priority class names with 'system-' prefix are reserved for system use only. \
                 error: {why}"
            )));
        }
        return;
    }
    if value.number() > USER_PRIORITY_MAX {
        let detail = "maximum allowed value of a user defined priority is 1000000000";
        errors.push(value.forbidden(detail));
    }
}

/// Returns the difference of a class from the one of the system that has this name.
///
/// Upstream: `IsKnownSystemPriorityClass`
fn wrong_system_class(class: &Place<'_>, name: &str) -> Option<String> {
    let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.member("value").number() != *value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    let is_default = class.value.get("globalDefault") == Some(&Value::Bool(true));
    is_default.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

/// Rejects a text that is no request in PEM form. The request itself is not read.
///
/// Upstream: `ParseCSR`
pub(super) fn signing_request(request: &Place<'_>, errors: &mut Errors) {
    let text = STANDARD.decode(request.text()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if !text.contains("-----BEGIN CERTIFICATE REQUEST-----") {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        errors.push(request.invalid(detail));
    }
}

/// Rejects conditions that contradict each other, and changes of a decision.
///
/// Upstream: `validateConditions`
pub(super) fn approval(conditions: &Place<'_>, errors: &mut Errors) {
    let has = |list: Option<&Value>, wanted: &str| {
        let mut list = list.and_then(Value::as_array).into_iter().flatten();
        list.any(|it| text(it, "type") == wanted)
    };
    let decisions = ["Approved", "Denied"];
    if decisions.iter().all(|it| has(Some(conditions.value), it)) {
        let detail = "Approved and Denied conditions are mutually exclusive";
        errors.push(conditions.invalid_as(&json!("Denied"), detail));
    }
    for decision in [decisions[0], decisions[1], "Failed"] {
        if has(conditions.old, decision) && !has(Some(conditions.value), decision) {
            let detail = format!("updates may not remove a condition of type {decision:?}");
            errors.push(conditions.forbidden(&detail));
        }
    }
    let is_final =
        |it: &Place<'_>| decisions.contains(&it.text_of("type")) || it.text_of("type") == "Failed";
    for condition in conditions.elements().filter(is_final) {
        let status = condition.member("status");
        if status.text() != "True" {
            errors.push(status.not_supported(&["True"]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::tests::fields;

    #[test]
    fn priorities_are_limited() {
        let class = json!({"metadata": {"name": "system-x"}, "value": 2_000_000_000});
        assert_eq!(fields(user_priority, &class), ["x.metadata.name"]);
        let class = json!({"metadata": {"name": "x"}, "value": 2_000_000_000});
        assert_eq!(fields(user_priority, &class), ["x.value"]);
    }
}
