//! Rules of devices and their slices.

use kube_apimachinery::quantity::Quantity;
use serde_json::json;

use super::qualified_name;
use crate::go::names;
use crate::go::semver::Semver;
use crate::members::list;
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place};

/// Maximum number of devices in a slice, and of those with taints or counters.
const DEVICES_MAX: i64 = 128;
const ADVANCED_DEVICES_MAX: i64 = 64;

/// Maximum numbers of a device: attributes and capacities, values of attributes, bytes of a value,
/// conditions, and choices of a request.
const ATTRIBUTES_MAX: usize = 32;
const VALUES_MAX: usize = 48;
const VALUE_MAX: usize = 64;
const CONDITIONS_MAX: i64 = 4;
const CHOICES_MAX: i64 = 10;

const NOT_TRUE: &str = "must be either unset or set to true";

/// Checks that a slice is for nodes in one way.
pub(in crate::validation) fn slice_nodes(spec: &Place<'_>, errors: &mut Errors) {
    let flags = ["allNodes", "perDeviceNodeSelection"];
    let detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                  `perDeviceNodeSelection` is required";
    let several = format!("{detail}, but multiple fields are set");
    let empty = "must be either unset or set to a non-empty string";
    nodes(spec, &flags, empty, (detail, &several), errors);
}

/// Checks that a device is for nodes in one way, if its slice isn't.
pub(in crate::validation) fn device_nodes(device: &Place<'_>, errors: &mut Errors) {
    let spec = device.up().and_then(Place::up);
    let is_own = spec.is_some_and(|spec| spec.member("perDeviceNodeSelection").value == true);
    if is_own {
        let detail = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                      `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        nodes(
            device,
            &["allNodes"],
            "must not be empty",
            (detail, detail),
            errors,
        );
    } else if ["nodeName", "nodeSelector", "allNodes"]
        .iter()
        .any(|member| device.member(member).is_present())
    {
        let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                      `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        errors.push(FieldError::invalid_text(device.path(), "null", detail));
    }
}

fn nodes(
    holder: &Place<'_>,
    flags: &[&str],
    empty: &str,
    (none, several): (&str, &str),
    errors: &mut Errors,
) {
    let mut set = Vec::new();
    let name = holder.member("nodeName");
    if name.is_present() {
        if name.text().is_empty() {
            errors.push(name.invalid(empty));
        } else {
            set.push("`nodeName`".to_owned());
            name.invalid_for(names::dns_subdomain(name.text()), errors);
        }
    }
    let selector = holder.member("nodeSelector");
    if selector.is_present() {
        set.push("`nodeSelector`".to_owned());
        selector.check("NodeSelector", errors);
        let terms = selector.member("nodeSelectorTerms");
        if flags.len() > 1 && terms.values().count() != 1 {
            errors.push(terms.invalid("must have exactly one node selector term"));
        }
    }
    for flag in flags {
        let place = holder.member(flag);
        if place.value == true {
            set.push(format!("`{flag}`"));
        } else if place.is_present() {
            errors.push(place.invalid(NOT_TRUE));
        }
    }
    match set.len() {
        0 => errors.push(holder.required(none)),
        1 => {}
        _ => {
            let shown = json!(format!("{{{}}}", set.join(", ")));
            errors.push(holder.invalid_as(&shown, several));
        }
    }
}

/// Checks the devices of a slice.
pub(in crate::validation) fn slice_devices(devices: &Place<'_>, errors: &mut Errors) {
    let is_advanced = |device: Place<'_>| {
        let has = |member: &str| list(device.value, member).next().is_some();
        has("taints") || has("consumesCounters")
    };
    let max = if devices.values().any(is_advanced) {
        ADVANCED_DEVICES_MAX
    } else {
        DEVICES_MAX
    };
    let found = devices.values().count();
    if i64::try_from(found).is_ok_and(|found| found > max) {
        errors.push(FieldError::too_many(devices.path(), found, max));
        return;
    }
    for device in devices.elements() {
        device.check("Device", errors);
    }
    super::repeated(devices, &["name"], "", errors);
}

/// Checks the numbers of a device's attributes, capacities and values.
pub(in crate::validation) fn device_size(device: &Place<'_>, errors: &mut Errors) {
    let count = |member: &str| device.member(member).entries().count();
    let all = count("attributes") + count("capacity");
    if all > ATTRIBUTES_MAX {
        let detail = format!(
            "the total number of attributes and capacities must not exceed {ATTRIBUTES_MAX}"
        );
        errors.push(device.invalid_as(&json!(all), &detail));
    }
    let values = count("attributes");
    if values > VALUES_MAX {
        let detail = format!("the total number of attribute values must not exceed {VALUES_MAX}");
        errors.push(device.invalid_as(&json!(values), &detail));
    }
}

/// Upstream: `validateDeviceAttribute`.
pub(in crate::validation) fn device_attributes(attributes: &Place<'_>, errors: &mut Errors) {
    for (name, attribute) in attributes.entries() {
        qualified_name(name, &attributes.path(), errors);
        let mut given = 0;
        for member in ["bool", "int", "string", "version"] {
            let value = attribute.member(member);
            given += usize::from(value.is_present());
            if member == "version" && value.is_present() && Semver::parse(value.text()).is_err() {
                let detail = "must be a string compatible with semver.org spec 2.0.0";
                errors.push(value.invalid(detail));
            }
            value.limited(VALUE_MAX, errors);
        }
        let detail = "exactly one value must be specified";
        match given {
            0 => errors.push(attribute.invalid_as(&json!(""), detail)),
            1 => {}
            _ => errors.push(attribute.invalid(detail)),
        }
    }
}

/// Checks the capacities of a device.
///
/// Upstream: `validateMultiAllocatableDeviceCapacity`.
pub(in crate::validation) fn device_capacities(capacities: &Place<'_>, errors: &mut Errors) {
    let device = capacities.up();
    let is_shared = device.is_some_and(|it| it.member("allowMultipleAllocations").value == true);
    for (name, capacity) in capacities.entries() {
        qualified_name(name, &capacities.path(), errors);
        let policy = capacity.member("requestPolicy");
        if !policy.is_present() {
            continue;
        }
        if is_shared {
            request_policy(&capacity, &policy, errors);
        } else {
            errors.push(policy.forbidden("allowMultipleAllocations must be true"));
        }
    }
}

fn quantity(place: &Place<'_>) -> Option<Quantity> {
    place.text().parse().ok()
}

/// Upstream: `validateRequestPolicy`.
fn request_policy(capacity: &Place<'_>, policy: &Place<'_>, errors: &mut Errors) {
    let [default, values, range] =
        ["default", "validValues", "validRange"].map(|it| policy.member(it));
    let max = quantity(&capacity.member("value")).unwrap_or_default();
    let has_values = values.values().next().is_some();
    if has_values && range.is_present() {
        let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \
                      \"validRange\" at the same time";
        errors.push(policy.forbidden(detail));
        return;
    }
    let needed = if has_values {
        "validValues"
    } else {
        "validRange"
    };
    let Some(default) = quantity(&default) else {
        if has_values || range.is_present() {
            let detail = format!("required when {needed} is defined");
            errors.push(default.required(&detail));
        }
        return;
    };
    if has_values {
        valid_values(&values, &default, &max, errors);
    } else if range.is_present() {
        valid_range(&range, &default, &max, errors);
    }
}

/// Upstream: `validateRequestPolicyValidValues`.
fn valid_values(values: &Place<'_>, default: &Quantity, max: &Quantity, errors: &mut Errors) {
    let all: Vec<Quantity> = values.values().filter_map(|it| quantity(&it)).collect();
    let invalid = |i: usize, value: &Quantity, detail: &str| {
        FieldError::invalid(
            format!("{}[{i}]", values.path()),
            &json!(value.to_string()),
            detail,
        )
    };
    for (i, pair) in all.windows(2).enumerate() {
        if pair[0] > pair[1] {
            errors.push(invalid(
                i + 1,
                &pair[1],
                "values must be sorted in ascending order",
            ));
        }
    }
    if i64::try_from(all.len()).is_ok_and(|found| found > CHOICES_MAX) {
        errors.push(FieldError::too_many(values.path(), all.len(), CHOICES_MAX));
    } else {
        for (i, value) in all.iter().enumerate().filter(|(_, value)| *value > max) {
            let detail = format!("option is larger than capacity value: {max}");
            errors.push(invalid(i, value, &detail));
        }
        for (i, value) in all.iter().enumerate() {
            if all[..i].iter().any(|other| other.value() == value.value()) {
                let path = format!("{}[{i}]", values.path());
                errors.push(FieldError::duplicate(
                    path,
                    &json!(value.value().to_string()),
                ));
            }
        }
    }
    if !all.contains(default) {
        let detail = "default value is not valid according to the requestPolicy";
        errors.push(values.invalid_as(&json!(default.to_string()), detail));
    }
}

/// Upstream: `validateRequestPolicyRange`.
fn valid_range(range: &Place<'_>, default: &Quantity, capacity: &Quantity, errors: &mut Errors) {
    let mut refuse = |member: &str, value: &Quantity, detail: String| {
        let path = range.member(member).path();
        errors.push(FieldError::invalid(
            path,
            &json!(value.to_string()),
            &detail,
        ));
    };
    let Some(min) = quantity(&range.member("min")) else {
        errors.push(
            range
                .member("min")
                .required("required when validRange is defined"),
        );
        return;
    };
    if min > *capacity {
        refuse(
            "min",
            &min,
            format!("min is larger than capacity value: {capacity}"),
        );
    }
    if *default < min {
        refuse("min", default, format!("default is less than min: {min}"));
    }
    let max = quantity(&range.member("max"));
    if let Some(max) = &max {
        if min > *max {
            refuse("max", &min, format!("min is larger than max: {max}"));
        }
        if *max > *capacity {
            refuse(
                "max",
                max,
                format!("max is larger than capacity value: {capacity}"),
            );
        }
        if *default > *max {
            refuse("max", default, format!("default is more than max: {max}"));
        }
    }
    let Some(step) = quantity(&range.member("step")) else {
        return;
    };
    if let Some(added) = min.checked_add(&step).filter(|added| added > capacity) {
        refuse(
            "step",
            &step,
            format!("one step {added} is larger than capacity value: {capacity}"),
        );
    }
    for value in [Some(default), max.as_ref()].into_iter().flatten() {
        let rest = (value.value() - min.value()).checked_rem(step.value());
        if rest.is_some_and(|rest| rest != 0) {
            refuse(
                "step",
                value,
                format!("value is not a multiple of a given step ({step}) from ({min})"),
            );
        }
    }
}

/// Checks the names of counters.
pub(in crate::validation) fn counter_names(counters: &Place<'_>, errors: &mut Errors) {
    for (name, _) in counters.entries() {
        let wrong = names::dns_label(name).into_iter();
        errors.extend(wrong.map(|why| counters.invalid_as(&json!(name), why)));
    }
}

/// Upstream: `validateDeviceBindingParameters`.
pub(in crate::validation) fn binding_conditions(holder: &Place<'_>, errors: &mut Errors) {
    let members = ["bindingConditions", "bindingFailureConditions"];
    let [conditions, failures] = members.map(|member| holder.member(member));
    for list in [&conditions, &failures] {
        let found = list.values().count();
        if i64::try_from(found).is_ok_and(|found| found > CONDITIONS_MAX) {
            errors.push(FieldError::too_many(list.path(), found, CONDITIONS_MAX));
            continue;
        }
        for name in list.elements() {
            name.invalid_for(names::qualified_name(name.text()), errors);
        }
    }
    for list in [&conditions, &failures] {
        super::repeated(list, &[], "", errors);
    }
    for failure in failures.elements() {
        if conditions.values().any(|it| it.value == failure.value) {
            errors.push(
                failure.invalid("bindingFailureConditions must not overlap with bindingConditions"),
            );
        }
    }
    for (empty, other) in [(&conditions, &failures), (&failures, &conditions)] {
        if empty.is_empty() && !other.is_empty() {
            let [needed, used] = [empty, other].map(|place| {
                let path = place.path();
                path.rsplit('.').next().unwrap_or_default().to_owned()
            });
            errors.push(empty.invalid(&format!("{needed} are required to use {used}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::validation::tests::{details, fields};

    #[test]
    fn default_lies_in_the_range_of_a_policy() {
        let capacity = |range: Value| json!({"value": "10", "requestPolicy": {"default": "3", "validRange": range}});
        // The last error ends with the limit: `default is less than min: 4`.
        let check = |capacity: &Value| {
            let of = |place: &Place<'_>, errors: &mut Errors| {
                request_policy(place, &place.member("requestPolicy"), errors);
            };
            details(of, capacity)
        };
        assert_eq!(
            check(&capacity(json!({"min": "1", "max": "9", "step": "2"}))),
            [""; 0]
        );
        assert_eq!(check(&capacity(json!({"min": "4"}))), ["4"]);
        assert_eq!(
            check(&capacity(json!({"min": "1", "step": "3"}))),
            ["value is not a multiple of a given step (3) from (1)"]
        );
    }

    #[test]
    fn conditions_need_each_other() {
        let device = json!({"bindingConditions": ["a", "a"]});
        assert_eq!(
            fields(binding_conditions, &device),
            ["x.bindingConditions[1]", "x.bindingFailureConditions"]
        );
    }
}
