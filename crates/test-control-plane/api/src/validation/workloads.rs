//! Rules of the kinds with a pod template, except stateful sets.

use serde_json::Value;

use super::place::{Errors, Place};
use super::rules;
use super::stateful_set::{not_above_replicas, not_negative};
use crate::status::FieldError;

pub(super) fn progress_deadline(spec: &Place<'_>, errors: &mut Errors) {
    let deadline = spec.member("progressDeadlineSeconds");
    if deadline.is_present() && deadline.number() <= spec.member("minReadySeconds").number() {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

/// Rejects rolling updates that can't begin.
pub(super) fn no_progress(rolling: &Place<'_>, errors: &mut Errors) {
    let zero = Value::from(0);
    let of = |member: &str| rolling.value.get(member).unwrap_or(&zero);
    let is_zero = |value: &Value| *value == 0 || *value == "0%";
    if is_zero(of("maxUnavailable")) && is_zero(of("maxSurge")) {
        errors.push(FieldError::invalid(
            rolling.member("maxUnavailable").path(),
            of("maxUnavailable"),
            "may not be 0 when `maxSurge` is 0",
        ));
    }
}

pub(super) fn daemon_set_strategy(spec: &Place<'_>, errors: &mut Errors) {
    let strategy = spec.member("updateStrategy");
    let rolling = strategy.member("rollingUpdate");
    let kind = strategy.member("type");
    match kind.text() {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_present() => {
            rules::check("RollingUpdateDeployment", &rolling, errors);
        }
        "RollingUpdate" => errors.push(rolling.required("")),
        _ => {
            // The text of the reference's internal type.
            let (kind, rolling) = (kind.value, rolling.value);
            errors.push(FieldError::not_supported_text(
                strategy.path(),
                &format!("{{\"Type\":{kind},\"RollingUpdate\":{rolling}}}"),
                &["RollingUpdate", "OnDelete"],
            ));
        }
    }
}

/// Validates the counters of a status.
pub(super) fn status(status: &Place<'_>, errors: &mut Errors) {
    let counters = status.value.as_object().into_iter().flatten();
    let counters = counters.filter(|(_, count)| count.is_number());
    for (member, _) in counters {
        not_negative(&status.member(member), errors);
    }
    if status.member("replicas").is_present() {
        let mut counters = vec![
            "fullyLabeledReplicas",
            "readyReplicas",
            "updatedReplicas",
            "availableReplicas",
        ];
        counters.retain(|member| status.member(member).is_present());
        not_above_replicas(status, &counters, errors);
    }
}
