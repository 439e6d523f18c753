//! Rules of the smaller kinds.

use std::collections::BTreeSet;

use kube_apimachinery::json::replace_invalid_utf8;
use serde_json::{Value, json};

use super::place::{Errors, Place};
use super::{Subject, names, rules};
use crate::go::json::held;
use crate::go::json::raw::compact;
use crate::status::FieldError;

pub(super) fn controller_revision(subject: Subject<'_>, errors: &mut Errors) {
    let new = subject.new;
    let printed = new
        .data
        .as_deref()
        .map(|data| compact(&held::release(data)));
    let printed = replace_invalid_utf8(&printed.unwrap_or_default());
    // The new object is checked before the change.
    rules::check("ControllerRevision", &Place::new(&new.value, ""), errors);
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

pub(super) fn one_budget(spec: &Place<'_>, errors: &mut Errors) {
    let members = [
        "minAvailable",
        "selector",
        "maxUnavailable",
        "unhealthyPodEvictionPolicy",
    ];
    let [min, selector, max, policy] = members.map(|member| spec.member(member));
    if min.is_present() && max.is_present() {
        // The text of the reference's internal type.
        let printed = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\
             \"UnhealthyPodEvictionPolicy\":{}}}",
            min.value, selector.value, max.value, policy.value
        );
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid_text(spec.path(), &printed, detail));
    }
}

/// Validates a non-negative number or a percentage up to 100.
///
/// Upstream: `ValidatePositiveIntOrPercent`, `IsNotMoreThan100Percent`.
pub(super) fn count_or_percent(count: &Place<'_>, errors: &mut Errors) {
    let percent = count
        .text()
        .strip_suffix('%')
        .filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        .map(|digits| digits.parse().unwrap_or(u64::MAX));
    let detail = match (count.value.as_i64(), percent) {
        (Some(n), _) if n < 0 => "must be greater than or equal to 0",
        (_, Some(n)) if n > 100 => "must not be greater than 100%",
        (None, None) => {
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. \
             '1%',  or '93%', regex used for validation is '[0-9]+%')"
        }
        _ => return,
    };
    errors.push(count.invalid(detail));
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

/// Rejects another role.
pub(super) fn role_ref_update(role: &Place<'_>, errors: &mut Errors) {
    if role.is_changed() {
        let [group, kind, name] = ["apiGroup", "kind", "name"].map(|member| role.text_of(member));
        let printed = json!({"APIGroup": group, "Kind": kind, "Name": name});
        let detail = "cannot change roleRef";
        errors.push(FieldError::invalid(role.path(), &printed, detail));
    }
}
