//! Resource names and quantities.

use kube_apimachinery::quantity::Quantity;
use serde_json::{Value, json};

use super::names;
use super::place::Errors;
use crate::status::FieldError;

/// The resources of containers, except huge pages and resources with another domain.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// The objects that quotas count, in whole numbers.
const COUNTED: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// The amounts that quotas sum, in addition to container resources.
const SUMMED: [&str; 7] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
];

/// The use of a resource name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedFor {
    /// Containers or whole pods.
    Containers,
    /// Quotas.
    Quotas,
    /// Any other use.
    Anything,
}

/// Upstream: `validateContainerResourceName`, `ValidateResourceQuotaResourceName` and
/// `validateResourceName`.
pub(super) fn validate(name: &str, of: NamedFor, field: &str, errors: &mut Errors) {
    let wrong = names::qualified_name(name);
    if !wrong.is_empty() || name.contains('/') {
        let wrong = wrong.iter();
        errors.extend(wrong.map(|why| FieldError::invalid(field, &json!(name), why)));
        return;
    }
    let mut refuse = |why| errors.push(FieldError::invalid(field, &json!(name), why));
    if of == NamedFor::Quotas {
        if !is_of_quotas(name) {
            refuse("must be a standard resource for quota");
        }
        return;
    }
    let of_containers = OF_CONTAINERS.contains(&name) || name.starts_with("hugepages-");
    if !of_containers && name != "storage" && !is_of_quotas(name) {
        refuse("must be a standard resource type or fully qualified");
    }
    if !of_containers && of == NamedFor::Containers {
        refuse("must be a standard resource for containers");
    }
}

/// Upstream: `IsStandardQuotaResourceName`.
pub(super) fn is_of_quotas(name: &str) -> bool {
    let known = [&OF_CONTAINERS[..], &COUNTED, &SUMMED];
    known.iter().any(|names| names.contains(&name))
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

/// Validates the quantity of a resource in a quota.
///
/// Upstream: `ValidateResourceQuantityValue`.
pub(super) fn of_quota(name: &str, value: &Value, field: &str, errors: &mut Errors) {
    let is_extended = !is_native(name) && !name.starts_with("requests.");
    quantity(value, COUNTED.contains(&name) || is_extended, field, errors);
}

/// Validates a quantity, which may have to be an integer.
pub(super) fn quantity(value: &Value, must_be_integer: bool, field: &str, errors: &mut Errors) {
    let Some(parsed) = parsed(value) else {
        return;
    };
    if parsed < Quantity::default() {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(field, value, detail));
    }
    if must_be_integer && parsed.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(field, value, "must be an integer"));
    }
}

/// Parses a quantity for comparison.
pub(super) fn parsed(value: &Value) -> Option<Quantity> {
    value.as_str()?.parse().ok()
}

/// Returns true for a resource in Kubernetes' own domain.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns true if the resource can be overcommitted.
pub(super) fn can_be_overcommitted(name: &str) -> bool {
    is_native(name) && !name.starts_with("hugepages-")
}
