//! Rules of the kinds with a pod template, and of disruption budgets.

use kube_apimachinery::selector::{LabelSelector, Selector};
use serde_json::{Map, Value, json};

use super::engine::{Errors, Place};

/// Parses the selector of a workload. Without one, it selects nothing.
pub(super) fn selector(found: &Value) -> Option<Selector> {
    if found.is_null() {
        return Some(Selector::nothing());
    }
    let selector: LabelSelector = serde_json::from_value(found.clone()).ok()?;
    Selector::from_label_selector(Some(&selector)).ok()
}

/// Rejects a template without the labels of the selector.
pub(super) fn selects(selector: &Selector, spec: &Place<'_>, errors: &mut Errors) {
    let labels = spec.member("template.metadata.labels");
    let given = labels.value.as_object();
    if !selector.matches(given.unwrap_or(&Map::new())) {
        let detail = "`selector` does not match template `labels`";
        errors.push(labels.invalid_as(labels.value, detail));
    }
}

/// Checks that the selector of a spec, if it is valid, selects the pods of the template.
pub(super) fn selected_template(spec: &Place<'_>, errors: &mut Errors) {
    if let Some(selector) = selector(spec.member("selector").value) {
        selects(&selector, spec, errors);
    }
}

/// As `selected_template`, for a selector that is a map of labels.
pub(super) fn selected_by_map(spec: &Place<'_>, errors: &mut Errors) {
    let labels = json!({"matchLabels": spec.member("selector").value});
    if let Some(selector) = selector(&labels).filter(|selector| !selector.is_empty()) {
        selects(&selector, spec, errors);
    }
}

/// Checks the selector and the template of deployments and replica sets.
///
/// Upstream: `ValidateDeploymentSpec`, `ValidatePodTemplateSpecForReplicaSet`.
pub(super) fn selector_and_template(spec: &Place<'_>, errors: &mut Errors) {
    let found = spec.member("selector");
    given_selector(&found, "deployment", errors);
    match selector(found.value) {
        None => errors.push(found.invalid("invalid label selector")),
        Some(selector) => {
            selects(&selector, spec, errors);
            spec.check("ReplicaSetSpec/template", errors);
        }
    }
}

/// Rejects a selector that is missing, invalid or empty.
pub(super) fn given_selector(selector: &Place<'_>, noun: &str, errors: &mut Errors) {
    if !selector.is_present() {
        errors.push(selector.required(""));
        return;
    }
    selector.check("LabelSelector", errors);
    let members = ["matchLabels", "matchExpressions"];
    if members
        .iter()
        .all(|member| selector.member(member).is_empty())
    {
        let detail = format!("empty selector is invalid for {noun}");
        errors.push(selector.invalid(&detail));
    }
}

/// Returns a number, or the number of percents; the number of a text that is no percentage.
///
/// Upstream: `getIntOrPercentValue`.
fn number_or_percents(count: &Value) -> i64 {
    let Some(text) = count.as_str() else {
        return count.as_i64().unwrap_or_default();
    };
    let percents = text.strip_suffix('%').filter(|_| is_percent(text));
    percents.unwrap_or(text).parse().unwrap_or_default()
}

fn is_percent(text: &str) -> bool {
    let digits = text.strip_suffix('%');
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Reports a text that is no percentage, or a negative number.
///
/// Upstream: `ValidatePositiveIntOrPercent`.
pub(super) fn count(count: &Place<'_>, _: &[&str], _: &str, errors: &mut Errors) {
    let detail = match count.value {
        Value::String(text) if !is_percent(text) => {
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. \
             '1%',  or '93%', regex used for validation is '[0-9]+%')"
        }
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            "must be greater than or equal to 0"
        }
        _ => return,
    };
    errors.push(count.invalid(detail));
}

/// Reports more than 100%.
///
/// Upstream: `IsNotMoreThan100Percent`.
pub(super) fn at_most_all(count: &Place<'_>, _: &[&str], _: &str, errors: &mut Errors) {
    if is_percent(count.text()) && number_or_percents(count.value) > 100 {
        errors.push(count.invalid("must not be greater than 100%"));
    }
}

pub(super) fn not_zero(count: &Place<'_>, errors: &mut Errors) {
    if number_or_percents(count.value) == 0 {
        errors.push(count.invalid("cannot be 0"));
    }
}

/// Rejects rolling updates of a daemon set that begin in both ways, or in none.
pub(super) fn surge_or_unavailable(rolling: &Place<'_>, errors: &mut Errors) {
    let [unavailable, surge] = ["maxUnavailable", "maxSurge"].map(|member| rolling.member(member));
    match [&unavailable, &surge].map(|count| number_or_percents(count.value) != 0) {
        [true, true] => {
            errors.push(surge.invalid("may not be set when maxUnavailable is non-zero"));
        }
        [false, false] => {
            errors.push(unavailable.required("cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
}

/// Rejects rolling updates of a deployment that can't begin.
pub(super) fn no_progress(unavailable: &Place<'_>, errors: &mut Errors) {
    let surge = unavailable
        .up()
        .map(|rolling| rolling.member("maxSurge").value.clone());
    let zero = json!(0);
    let is_zero = |count: &Value| number_or_percents(count) == 0;
    if is_zero(unavailable.value) && is_zero(&surge.unwrap_or_default()) {
        let shown = match unavailable.value {
            Value::Null => &zero,
            value => value,
        };
        let detail = "may not be 0 when `maxSurge` is 0";
        errors.push(unavailable.invalid_as(shown, detail));
    }
}

/// Upstream: `IsDecremented`.
pub(super) fn not_decremented(count: &Place<'_>, errors: &mut Errors) {
    let (now, before) = (count.value.as_i64(), count.old.and_then(Value::as_i64));
    if before.is_some_and(|before| now.is_none_or(|now| now < before)) {
        let shown = json!(now.unwrap_or(0));
        errors.push(count.invalid_as(&shown, "cannot be decremented"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::tests::details;

    #[test]
    fn counts_are_numbers_or_percentages() {
        let check = |value: Value| details(|place, errors| count(place, &[], "", errors), &value);
        for value in [json!(1), json!("100%"), json!(0), json!("0%")] {
            assert_eq!(check(value.clone()), [""; 0], "{value}");
        }
        for value in [json!(-1), json!("-5%"), json!("5"), json!("%")] {
            assert_eq!(check(value.clone()).len(), 1, "{value}");
        }
        let all =
            |value: Value| details(|place, errors| at_most_all(place, &[], "", errors), &value);
        assert_eq!(all(json!("101%")), ["must not be greater than 100%"]);
        assert_eq!(all(json!(101)), [""; 0]);
        assert_eq!(details(not_zero, &json!("0%")), ["cannot be 0"]);
        assert_eq!(details(not_zero, &json!("00")), ["cannot be 0"]);
    }

    #[test]
    fn rolling_updates_begin_in_one_way() {
        let of = |unavailable: Value, surge: Value| {
            let rolling = json!({"maxUnavailable": unavailable, "maxSurge": surge});
            details(surge_or_unavailable, &rolling).len()
        };
        assert_eq!(of(json!(1), json!(0)), 0);
        assert_eq!(of(json!("0%"), json!("5%")), 0);
        assert_eq!(of(json!(1), json!(1)), 1);
        assert_eq!(of(json!(0), json!("0%")), 1);
    }
}
