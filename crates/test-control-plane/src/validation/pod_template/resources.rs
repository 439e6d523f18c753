//! Rules of the resources that containers ask for.

use kube_apimachinery::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::{Errors, qualified};
use crate::validation::{FieldError, at, names};

/// The resources that containers can ask for, beside pages and those of other domains.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// The resources that quotas can name besides, by their last part.
const STANDARD: [&str; 13] = [
    "configmaps",
    "count",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "storage",
];

/// Upstream: `validateContainerResourceRequirements`.
pub(super) fn validate(container: &Value, path: &str, errors: &mut Errors) {
    let Some(resources) = at(container, "/resources") else {
        return;
    };
    let (limits, requests) = (members(resources, "limits"), members(resources, "requests"));
    let path = format!("{path}.resources");
    for (name, quantity) in limits.into_iter().flatten() {
        one(name, quantity, &format!("{path}.limits[{name}]"), errors);
    }
    for (name, quantity) in requests.into_iter().flatten() {
        one(name, quantity, &format!("{path}.requests[{name}]"), errors);
        let Some(limit) = limits.and_then(|limits| limits.get(name)) else {
            if !can_be_overcommitted(name) {
                let detail = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(format!("{path}.limits"), detail));
            }
            continue;
        };
        let (Some(wanted), Some(most)) = (parsed(quantity), parsed(limit)) else {
            continue;
        };
        let relation = if wanted != most && !can_be_overcommitted(name) {
            "equal to"
        } else if wanted > most {
            "less than or equal to"
        } else {
            continue;
        };
        let limit = limit.as_str().unwrap_or_default();
        let detail = format!("must be {relation} {name} limit of {limit}");
        errors.push(FieldError::invalid(
            format!("{path}.requests"),
            quantity,
            &detail,
        ));
    }
}

fn members<'a>(resources: &'a Value, member: &str) -> Option<&'a Map<String, Value>> {
    resources.get(member)?.as_object()
}

fn parsed(quantity: &Value) -> Option<Quantity> {
    quantity.as_str()?.parse().ok()
}

/// The name and the quantity of a resource.
fn one(name: &str, quantity: &Value, field: &str, errors: &mut Errors) {
    resource_name(name, field, errors);
    let Some(parsed) = parsed(quantity) else {
        return;
    };
    if parsed < Quantity::default() {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(field, quantity, detail));
    }
    let comes_whole = !is_native(name);
    if comes_whole && parsed.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(field, quantity, "must be an integer"));
    }
}

/// Upstream: `validateContainerResourceName`.
fn resource_name(name: &str, field: &str, errors: &mut Errors) {
    if !names::qualified_name(name).is_empty() {
        qualified(name, field, errors);
        return;
    }
    if name.contains('/') {
        return;
    }
    let of_containers = OF_CONTAINERS.contains(&name) || name.starts_with("hugepages-");
    if !of_containers && !STANDARD.contains(&name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(field, &json!(name), detail));
    }
    if !of_containers {
        let detail = "must be a standard resource for containers";
        errors.push(FieldError::invalid(field, &json!(name), detail));
    }
}

/// Whether Kubernetes itself knows the resource.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether more of it can be promised than there is.
fn can_be_overcommitted(name: &str) -> bool {
    is_native(name) && !name.starts_with("hugepages-")
}
