//! Rules of volumes, their claims and classes.

use std::collections::{BTreeMap, BTreeSet};

use kube_apimachinery::quantity::Quantity;
use serde_json::{Value, json};

use super::engine::{Errors, Place};
use super::resource_names;
use crate::go::names;
use crate::members::{at, copy_field, list, set_or_remove, text, text_at};
use crate::status::FieldError;

const IMMUTABLE: &str = "spec is immutable after creation except resources.requests and \
     volumeAttributesClassName for bound claims";

/// The annotation that the name of the class replaced.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Maximum number of parameters of a class, and size of all, in bytes.
const PARAMETERS_MAX: usize = 512;
const PARAMETERS_SIZE_MAX: usize = 256 * 1024;

/// Maximum length of a driver's name, in bytes.
const DRIVER_NAME_MAX: usize = 63;

/// The states of a resize.
const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Fields of a volume's spec that aren't volume sources.
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

pub(super) fn storage_capacity(capacity: &Place<'_>, errors: &mut Errors) {
    if !capacity.member("storage").is_present() {
        let path = capacity.path();
        errors.push(FieldError::not_supported(
            path,
            capacity.value,
            &["storage"],
        ));
    }
}

pub(super) fn volume_type(spec: &Place<'_>, errors: &mut Errors) {
    let mut members = spec.value.as_object().into_iter().flatten();
    if members.all(|(member, _)| NO_SOURCES.contains(&member.as_str())) {
        errors.push(spec.required("must specify a volume type"));
    }
}

/// Upstream: `validateParameters`.
pub(super) fn parameters(parameters: &Place<'_>, errors: &mut Errors) {
    let too_long = |max: usize| {
        let detail = format!("may not be more than {max} bytes");
        FieldError::too_long(parameters.path(), &detail)
    };
    if parameters.entries().count() > PARAMETERS_MAX {
        errors.push(too_long(PARAMETERS_MAX));
        return;
    }
    if parameters.entries().any(|(key, _)| key.is_empty()) {
        let detail = "field can not be empty.";
        errors.push(parameters.invalid_as(&json!(""), detail));
    }
    let sizes = parameters
        .entries()
        .map(|(key, value)| key.len() + value.text().len());
    if sizes.sum::<usize>() > PARAMETERS_SIZE_MAX {
        errors.push(too_long(PARAMETERS_SIZE_MAX));
    }
}

/// Rejects a term like an earlier one. As in upstream, an empty term is also like each of as many empty
/// ones as there are terms, with which its list begins.
///
/// Upstream: `validateAllowedTopologies`.
pub(super) fn topologies(topologies: &Place<'_>, errors: &mut Errors) {
    const MEMBER: &str = "matchLabelExpressions";
    let mut seen = vec![BTreeMap::new(); topologies.elements().count()];
    let terms = topologies.value.as_array().into_iter().flatten();
    for (i, value) in terms.enumerate() {
        let term = topologies.element(i, value);
        let expressions = term.member(MEMBER);
        let mut values_by_key: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (i, value) in list(value, MEMBER).enumerate() {
            let expression = expressions.element(i, value);
            expression.check("TopologySelectorLabelRequirement", errors);
            let values = list(value, "values").filter_map(Value::as_str);
            if values_by_key
                .insert(text(value, "key"), values.collect())
                .is_some()
            {
                errors.push(expression.member("key").duplicate());
            }
        }
        for _ in seen.iter().filter(|seen| **seen == values_by_key) {
            errors.push(FieldError::duplicate(expressions.path(), &json!("")));
        }
        seen.push(values_by_key);
    }
}

/// Rejects other access modes besides `ReadWriteOncePod`.
pub(super) fn one_pod_only(modes: &Place<'_>, errors: &mut Errors) {
    let has = |names: &[&str]| modes.values().any(|mode| names.contains(&mode.text()));
    let others = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"];
    if has(&["ReadWriteOncePod"]) && has(&others) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(modes.forbidden(detail));
    }
}

fn quantity(value: Option<&Value>) -> Option<Quantity> {
    value?.as_str()?.parse().ok()
}

/// Upstream: `ValidatePersistentVolumeClaimSpec`, the part about both sources.
pub(super) fn data_sources(spec: &Place<'_>, errors: &mut Errors) {
    let [source, reference] = ["dataSource", "dataSourceRef"].map(|member| spec.member(member));
    if !source.is_present() || !reference.is_present() {
        return;
    }
    let parts = ["apiGroup", "kind", "name"];
    let detail = if !reference.text_of("namespace").is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if parts
        .iter()
        .any(|part| source.value.get(part) != reference.value.get(part))
    {
        "must match dataSourceRef"
    } else {
        return;
    };
    errors.push(spec.invalid_as(&json!({}), detail));
}

/// Upstream: `validateBasicResource`.
pub(super) fn valid_quantity(amount: &Place<'_>, errors: &mut Errors) {
    if let Some(found) = quantity(Some(amount.value)).filter(|found| found.value() < 0) {
        let detail = "must be a valid resource quantity";
        errors.push(amount.invalid_as(&json!(found.value()), detail));
    }
}

/// Upstream: `validatePersistentVolumeClaimResourceKey`.
fn resource_key(name: &str, field: &str, errors: &mut Errors) {
    let wrong = names::qualified_name(name);
    if wrong.is_empty() && resource_names::is_native(name) && name != "storage" {
        errors.push(FieldError::not_supported(field, &json!(name), &["storage"]));
    }
    let wrong = wrong.iter();
    errors.extend(wrong.map(|why| FieldError::invalid(field, &json!(name), why)));
}

pub(super) fn resize_statuses(statuses: &Place<'_>, errors: &mut Errors) {
    let path = statuses.path();
    for (name, status) in statuses.entries() {
        resource_key(name, &path, errors);
        if !RESIZE_STATES.contains(&status.text()) {
            errors.push(FieldError::not_supported(
                &*path,
                &json!(name),
                &RESIZE_STATES,
            ));
        }
    }
}

pub(super) fn allocated_resources(amounts: &Place<'_>, errors: &mut Errors) {
    for (name, amount) in amounts.entries() {
        let before = errors.len();
        resource_key(name, &amounts.path(), errors);
        if errors.len() == before {
            valid_quantity(&amount, errors);
        }
        if errors.len() == before {
            resource_names::of_quantity("storage", amount.value, &amount.path(), errors);
        }
    }
}

/// Upstream: `ValidatePersistentVolumeClaimUpdate`.
pub(super) fn claim_update(claim: &Place<'_>, errors: &mut Errors) {
    let spec = claim.member("spec");
    let (new, Some(old)) = (spec.value, spec.old) else {
        return;
    };
    let (mut now, mut before) = (new.clone(), old.clone());
    if text(old, "volumeName").is_empty() {
        copy_field(&mut before, new, "volumeName");
    }
    class_update(claim, &mut now, errors);
    let size = "/resources/requests/storage";
    if text_at(claim.value, "/status/phase") == "Bound" {
        if at(&now, "/resources/requests").is_some() {
            let stored = at(old, size).cloned();
            if let Some(requests) = now["resources"]["requests"].as_object_mut() {
                set_or_remove(requests, "storage", stored);
            }
        }
        copy_field(&mut now, old, "volumeAttributesClassName");
    }
    if now != before {
        let difference = spec.difference("PersistentVolumeClaimSpec", &before, &now);
        errors.push(spec.forbidden(&format!("{IMMUTABLE}\n{difference}")));
    }
    let of = |value: Option<&Value>| quantity(value).unwrap_or_default();
    let wanted = of(at(new, size));
    let capacity = of(claim
        .old
        .and_then(|old| at(old, "/status/capacity/storage")));
    if wanted < of(at(old, size)) && wanted <= capacity {
        let detail = "field can not be less than status.capacity";
        errors.push(spec.member("resources.requests.storage").forbidden(detail));
    }
    let mode = spec.member_as("volumeMode", "^volumeMode");
    if mode.is_changed() {
        errors.push(mode.invalid("field is immutable"));
    }
    let class = spec.member("volumeAttributesClassName");
    let current = claim.member("status.currentVolumeAttributesClassName").old;
    if class.is_changed() && class.is_empty() && current.is_some_and(|it| !it.is_null()) {
        let form = if class.is_present() {
            "empty string"
        } else {
            "nil"
        };
        let detail = format!(
            "update to {form} is forbidden when status.currentVolumeAttributesClassName is not nil"
        );
        errors.push(class.forbidden(&detail));
    }
}

/// Checks a change of the class, which an annotation may have named before.
fn class_update(claim: &Place<'_>, now: &mut Value, errors: &mut Errors) {
    let annotations = claim.member("metadata.annotations");
    let new_annotation = annotations.value.get(CLASS).and_then(Value::as_str);
    let annotation = annotations.old.and_then(|old| old.get(CLASS)?.as_str());
    let class = claim.member("spec.storageClassName");
    let old_class = class.old.filter(|old| !old.is_null());
    let name = class.value.as_str();
    if annotation.is_some()
        && old_class.is_none()
        && name == annotation
        && new_annotation.is_none_or(|new| Some(new) == annotation)
    {
        copy_field(now, &json!({}), "storageClassName");
        return;
    }
    if new_annotation.unwrap_or_default() != annotation.unwrap_or_default() {
        let field = format!("{}.{CLASS}", annotations.path());
        let shown = json!(new_annotation.unwrap_or_default());
        errors.push(FieldError::invalid(field, &shown, "field is immutable"));
    }
    if name.is_some() && old_class.is_none() && (annotation.is_none() || name == annotation) {
        copy_field(now, &json!({}), "storageClassName");
    }
}

/// Upstream: `ValidateCSIDriverName`.
pub(super) fn driver_name(name: &Place<'_>, _: &[&str], _: &str, errors: &mut Errors) {
    driver_name_at(name.text(), &name.path(), errors);
}

pub(super) fn driver_name_at(name: &str, path: &str, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if name.len() > DRIVER_NAME_MAX {
        let detail = format!("may not be more than {DRIVER_NAME_MAX} bytes");
        errors.push(FieldError::too_long(path, &detail));
    }
    let wrong = names::dns_subdomain(&name.to_lowercase()).into_iter();
    errors.extend(wrong.map(|why| FieldError::invalid(path, &json!(name), why)));
}
