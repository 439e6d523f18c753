//! Resource names and quantities.

use kube_apimachinery::quantity::Quantity;
use serde_json::{Value, json};

use super::engine::Errors;
use crate::go::names;
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
    /// Containers.
    Containers,
    /// Whole pods.
    Pods,
    /// Quotas.
    Quotas,
    /// Any other use.
    Anything,
}

/// Upstream: `validateContainerResourceName`, `ValidateResourceQuotaResourceName` and
/// `validateResourceName`.
pub(super) fn validate(name: &str, of: NamedFor, field: &str, errors: &mut Errors) {
    let is_bare = !name.contains('/');
    let is_huge = name.starts_with("hugepages-");
    let mut refuse = |why: &str| errors.push(FieldError::invalid(field, &json!(name), why));
    let wrong = names::qualified_name(name);
    for why in &wrong {
        refuse(why);
    }
    let is_known = !is_bare || name == "storage" || is_of_quotas(name);
    if wrong.is_empty() && !is_known {
        refuse("must be a standard resource type or fully qualified");
    }
    match of {
        NamedFor::Quotas if is_bare && !is_of_quotas(name) => {
            refuse("must be a standard resource for quota");
        }
        NamedFor::Containers if is_bare && !is_huge && !OF_CONTAINERS.contains(&name) => {
            refuse("must be a standard resource for containers");
        }
        NamedFor::Containers if !is_native(name) && !is_extended(name) => {
            refuse("doesn't follow extended resource name standard");
        }
        NamedFor::Pods if wrong.is_empty() && is_known && !is_huge && !is_pod_level(name) => {
            let known = ["cpu", "hugepages-", "memory"];
            errors.push(FieldError::not_supported(field, &json!(name), &known));
        }
        _ => {}
    }
}

fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory")
}

/// Upstream: `IsExtendedResourceName`.
pub(super) fn is_extended(name: &str) -> bool {
    let is_foreign = !is_native(name) && !name.starts_with("requests.");
    is_foreign && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Upstream: `IsStandardQuotaResourceName`.
pub(super) fn is_of_quotas(name: &str) -> bool {
    let known = [&OF_CONTAINERS[..], &COUNTED, &SUMMED];
    known.iter().any(|names| names.contains(&name))
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

/// Validates the quantity of a resource.
///
/// Upstream: `ValidateResourceQuantityValue`.
pub(super) fn of_quantity(name: &str, value: &Value, field: &str, errors: &mut Errors) {
    let Some(parsed) = parsed(value) else {
        return;
    };
    let must_be_integer = COUNTED.contains(&name) || is_extended(name);
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
