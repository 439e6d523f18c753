//! Rules of the smaller kinds.

use kube_apimachinery::json::replace_invalid_utf8;

use super::place::{Errors, Place};
use super::{Subject, rules};
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
