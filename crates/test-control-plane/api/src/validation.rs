//! Validation: the checks that reject a write with 422.

mod claim;
mod config;
mod endpoints;
mod events;
mod inner;
mod label_selector;
mod line_diff;
mod metadata;
mod names;
mod namespaces;
mod nodes;
mod others;
mod pod;
mod pod_template;
mod quotas;
mod rbac;
mod resource_names;
mod services;
mod stateful_set;
mod storage;
mod workloads;

use serde_json::Value;

pub(crate) use names::dns_label;
pub use names::path_segment;

use crate::kinds::Kind;
use crate::kinds::Target;
use crate::members;
use crate::object::Draft;
use crate::status::FieldError;

/// The write to validate.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The stored kind of the object.
    pub kind: &'static Kind,
    /// The kind in the request's URL, which may be another version of the stored kind.
    pub served: &'static Kind,
    /// The object after the write.
    pub new: &'a Draft,
    /// The stored object; `None` on create.
    pub old: Option<&'a Draft>,
    /// The target: the object or a subresource.
    pub target: Target,
}

/// Returns all errors of a write.
pub fn validate(subject: Subject<'_>) -> Vec<FieldError> {
    let mut errors = metadata::validate(subject);
    let kind = subject.kind;
    let storage = kind.storage;
    match storage {
        "statefulsets" => stateful_set::validate(subject, &mut errors),
        "pods" => pod::validate(subject, &mut errors),
        "persistentvolumeclaims" => claim::validate(subject, &mut errors),
        "controllerrevisions" => others::controller_revision(subject, &mut errors),
        "leases" => others::lease(subject, &mut errors),
        "events" => events::event(subject, &mut errors),
        "poddisruptionbudgets" => others::pod_disruption_budget(subject, &mut errors),
        "services" => services::service(subject, &mut errors),
        "configmaps" => config::config_map(subject, &mut errors),
        "secrets" => config::secret(subject, &mut errors),
        "namespaces" => namespaces::namespace(subject, &mut errors),
        "nodes" => nodes::node(subject, &mut errors),
        "endpoints" => endpoints::endpoints(subject, &mut errors),
        "limitranges" => quotas::limit_range(subject, &mut errors),
        "resourcequotas" => quotas::resource_quota(subject, &mut errors),
        "clusterroles" | "roles" => rbac::role(subject, &mut errors),
        "clusterrolebindings" | "rolebindings" => rbac::binding(subject, &mut errors),
        "persistentvolumes" => others::persistent_volume(subject, &mut errors),
        "storageclasses" => storage::storage_class(subject, &mut errors),
        "daemonsets" | "deployments" | "replicasets" | "replicationcontrollers" => {
            workloads::validate(subject, &mut errors);
        }
        _ => {}
    }
    errors
}

/// Returns true if the text is a DNS subdomain, the syntax of most object names.
pub fn is_subdomain(text: &str) -> bool {
    names::dns_subdomain(text).is_empty()
}

/// Returns the value at a JSON pointer, unless it is null.
fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    members::at(value, pointer).filter(|v| !v.is_null())
}

/// Rejects a negative number.
fn not_negative(value: &Value, pointer: &str, field: &str, errors: &mut Vec<FieldError>) {
    if let Some(number) = at(value, pointer)
        && number.as_i64().is_some_and(|n| n < 0)
    {
        errors.push(FieldError::invalid(
            field,
            number,
            "must be greater than or equal to 0",
        ));
    }
}
