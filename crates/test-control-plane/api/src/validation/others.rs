//! Rules of the smaller kinds.

use kube_apimachinery::json::replace_invalid_utf8;
use serde_json::Value;

use super::{FieldError, Subject, at, label_selector, not_negative};
use crate::go_json::held;
use crate::go_json::raw::compact;

pub(super) fn controller_revision(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let new = subject.new;
    let printed = new
        .data
        .as_deref()
        .map(|data| compact(&held::release(data)));
    let printed = replace_invalid_utf8(&printed.unwrap_or_default());
    // The new object is checked before the change.
    not_negative(&new.value, "/revision", "revision", errors);
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

pub(super) fn lease(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let value = &subject.new.value;
    if let Some(duration) = at(value, "/spec/leaseDurationSeconds")
        && duration.as_i64().is_some_and(|n| n <= 0)
    {
        let field = "spec.leaseDurationSeconds";
        errors.push(FieldError::invalid(
            field,
            duration,
            "must be greater than 0",
        ));
    }
    not_negative(
        value,
        "/spec/leaseTransitions",
        "spec.leaseTransitions",
        errors,
    );
}

pub(super) fn pod_disruption_budget(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let spec = subject.new.value.get("spec").unwrap_or(&Value::Null);
    if at(spec, "/minAvailable").is_some() && at(spec, "/maxUnavailable").is_some() {
        let of = |member: &str| spec.get(member).unwrap_or(&Value::Null);
        // The text of the reference's internal type.
        let printed = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\
             \"UnhealthyPodEvictionPolicy\":{}}}",
            of("minAvailable"),
            of("selector"),
            of("maxUnavailable"),
            of("unhealthyPodEvictionPolicy")
        );
        errors.push(FieldError::invalid_text(
            "spec",
            &printed,
            "minAvailable and maxUnavailable cannot be both set",
        ));
    }
    for member in ["minAvailable", "maxUnavailable"] {
        if let Some(value) = at(spec, &format!("/{member}")) {
            count_or_percent(value, &format!("spec.{member}"), errors);
        }
    }
    if let Some(selector) = at(spec, "/selector") {
        label_selector::validate(selector, "spec.selector", errors);
    }
    let policy = at(spec, "/unhealthyPodEvictionPolicy");
    let known = ["IfHealthyBudget", "AlwaysAllow"];
    if let Some(policy) = policy.filter(|policy| !known.iter().any(|k| *policy == k)) {
        errors.push(FieldError::not_supported(
            "spec.unhealthyPodEvictionPolicy",
            policy,
            &known,
        ));
    }
}

/// Validates a non-negative number or a percentage up to 100.
///
/// Upstream: `ValidatePositiveIntOrPercent`, `IsNotMoreThan100Percent`.
pub(super) fn count_or_percent(value: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let percent = value
        .as_str()
        .and_then(|text| text.strip_suffix('%'))
        .filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        .map(|digits| digits.parse().unwrap_or(u64::MAX));
    let detail = match (value.as_i64(), percent) {
        (Some(n), _) if n < 0 => "must be greater than or equal to 0",
        (_, Some(n)) if n > 100 => "must not be greater than 100%",
        (None, None) => {
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. \
             '1%',  or '93%', regex used for validation is '[0-9]+%')"
        }
        _ => return,
    };
    errors.push(FieldError::invalid(field, value, detail));
}

/// Members of a volume's spec that aren't volume sources.
const NO_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) fn persistent_volume(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let null = Value::Null;
    let spec = subject.new.value.get("spec").unwrap_or(&null);
    let is_empty = |member: &str| match spec.get(member) {
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        _ => true,
    };
    if is_empty("accessModes") {
        errors.push(FieldError::required("spec.accessModes", ""));
    }
    if is_empty("capacity") {
        errors.push(FieldError::required("spec.capacity", ""));
    } else if at(spec, "/capacity/storage").is_none() {
        let capacity = spec.get("capacity").unwrap_or(&null);
        errors.push(FieldError::not_supported(
            "spec.capacity",
            capacity,
            &["storage"],
        ));
    }
    let sources = spec.as_object().into_iter().flatten();
    if sources
        .filter(|(member, _)| !NO_SOURCES.contains(&member.as_str()))
        .count()
        == 0
    {
        errors.push(FieldError::required("spec", "must specify a volume type"));
    }
    let policy = spec.get("persistentVolumeReclaimPolicy").unwrap_or(&null);
    let known = ["Delete", "Recycle", "Retain"];
    if !known.iter().any(|k| policy == k) {
        let field = "spec.persistentVolumeReclaimPolicy";
        errors.push(FieldError::not_supported(field, policy, &known));
    }
}
