//! Scheduling rules.

use serde_json::{Value, json};

use crate::go::names;
use crate::members::{list, text};
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place};

/// Upstream: `ValidateMatchLabelKeysAndMismatchLabelKeys`.
pub(in crate::validation) fn label_keys(term: &Place<'_>, errors: &mut Errors) {
    let selector = term.member("labelSelector");
    let [matching, other] = ["matchLabelKeys", "mismatchLabelKeys"].map(|it| term.member(it));
    for keys in [&matching, &other]
        .into_iter()
        .filter(|keys| !keys.is_empty())
    {
        if selector.is_present() {
            keys.elements().for_each(|key| label_name(&key, errors));
        } else {
            let detail = "must not be specified when labelSelector is not set";
            errors.push(keys.forbidden(detail));
        }
    }
    let mut seen = label_names(selector.value);
    for expression in list(selector.value, "matchExpressions") {
        let key = text(expression, "key");
        let index = matching.values().position(|found| found.text() == key);
        if let Some(i) = index.filter(|_| seen.contains(&key)) {
            // The path is that of the term.
            let field = format!("{}[{i}]", term.path());
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(field, &json!(key), detail));
        }
        seen.push(key);
    }
    for key in matching.elements() {
        if other.values().any(|other| other.text() == key.text()) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            key.invalid_for([detail], errors);
        }
    }
}

fn label_name(name: &Place<'_>, errors: &mut Errors) {
    name.invalid_for(names::qualified_name(name.text()), errors);
}

fn label_names(selector: &Value) -> Vec<&str> {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    labels
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect()
}

/// Checks the keys of a constraint whose stored keys break the rule of today.
///
/// Upstream: `ValidateMatchLabelKeysInTopologySpread`.
pub(in crate::validation) fn old_label_keys(constraint: &Place<'_>, errors: &mut Errors) {
    let keys = constraint.member("matchLabelKeys");
    let selector = constraint.member("labelSelector");
    if !keys.is_empty() && !selector.is_present() {
        errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
    }
    let mut known = label_names(selector.value);
    known.extend(list(selector.value, "matchExpressions").map(|it| text(it, "key")));
    for key in keys.elements() {
        label_name(&key, errors);
        if known.contains(&key.text()) {
            key.invalid_for(["exists in both matchLabelKeys and labelSelector"], errors);
        }
    }
}

/// Reports tolerations that differ in nothing but their time.
pub(in crate::validation) fn repeated_tolerations(tolerations: &Place<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for toleration in tolerations.elements() {
        let key = ["key", "operator", "value", "effect"].map(|member| toleration.text_of(member));
        if seen.contains(&key) {
            errors.push(toleration.duplicate());
        }
        seen.push(key);
    }
}

/// Upstream: `ValidateSpreadConstraintNotRepeat`.
pub(in crate::validation) fn repeated_constraint(constraint: &Place<'_>, errors: &mut Errors) {
    let members = ["topologyKey", "whenUnsatisfiable"];
    let [key, action] = members.map(|member| constraint.text_of(member));
    let all = constraint.up().and_then(|list| list.value.as_array());
    let after = constraint.index().map_or(0, |i| i + 1);
    let mut after = all.into_iter().flatten().skip(after);
    if after.any(|other| members.map(|member| text(other, member)) == [key, action]) {
        let field = constraint.member("{topologyKey, whenUnsatisfiable}").path();
        let pair = format!("{{{key}, {action}}}");
        errors.push(FieldError::duplicate(field, &json!(pair)));
    }
}

pub(in crate::validation) fn min_domains(count: &Place<'_>, errors: &mut Errors) {
    let action = count
        .up()
        .map_or("", |constraint| constraint.text_of("whenUnsatisfiable"));
    let detail =
        format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
    errors.push(count.invalid(&detail));
}

/// Rejects operators of a disabled gate, which stored pods may have.
pub(in crate::validation) fn compared_toleration(toleration: &Place<'_>, errors: &mut Errors) {
    let is_in_use = toleration
        .context
        .pod
        .and_then(|pod| pod.old)
        .is_some_and(|old| {
            list(old, "tolerations").any(|it| matches!(text(it, "operator"), "Lt" | "Gt"))
        });
    let value = toleration.member("value");
    if !is_in_use {
        let operator = toleration.member("operator");
        errors.push(operator.not_supported(&["Equal", "Exists", "Lt", "Gt"]));
    } else if value
        .text()
        .parse::<i64>()
        .map_or(true, |n| n.to_string() != value.text())
    {
        let detail = "must be a valid decimal integer in canonical form";
        value.invalid_for([detail], errors);
    }
}

/// Validates taints. Errors name a path in the metadata, as in upstream.
///
/// Upstream: `validateNodeTaints`, called by `ValidateNode`.
pub(in crate::validation) fn taints(taints: &Place<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for taint in taints.elements() {
        taint.check("Taint", errors);
        let pair = ["effect", "key"].map(|member| taint.text_of(member));
        if seen.contains(&pair) {
            let mut error = taint.duplicate();
            error.message += ": taints must be unique by key and effect pair";
            errors.push(error);
        }
        seen.push(pair);
    }
}

/// Reports a label's value, with all reasons in one error.
pub(in crate::validation) fn joined_label_value(
    value: &Place<'_>,
    _: &[&str],
    _: &str,
    errors: &mut Errors,
) {
    let wrong = names::label_value(value.text());
    if !wrong.is_empty() {
        value.invalid_for([wrong.join(";")], errors);
    }
}
