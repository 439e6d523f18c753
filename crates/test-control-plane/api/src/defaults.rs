//! Defaults and admission of incoming objects.

mod others;
mod pods;
mod priority;
mod services;
mod storage;
mod workloads;

use kube_apimachinery::defaults as apimachinery;
use serde_json::{Map, Value, json};

use crate::custom;
use crate::events;
use crate::kinds::Kind;
use crate::members::object_mut;
use crate::object::Draft;
use crate::settings::FeatureGates;
use crate::status::{ApiError, ApiResult};

pub use services::keep_allocated;
pub use storage::is_default;
pub use workloads::count_templates;

/// Returns true if the kind's defaults would overwrite values of a wrong type. Such kinds need a
/// type check before defaulting.
pub(crate) fn hide_wrong_types(kind: &Kind) -> bool {
    matches!(
        &*kind.storage,
        "daemonsets"
            | "deployments"
            | "limitranges"
            | "namespaces"
            | "nodes"
            | "persistentvolumes"
            | "replicasets"
            | "replicationcontrollers"
            | "secrets"
            | "services"
            | "storageclasses"
    )
}

/// Sets the defaults of the kind.
pub fn set_defaults(kind: &Kind, gates: FeatureGates, draft: &mut Draft) {
    let value = &mut draft.value;
    match &*kind.storage {
        "clusterrolebindings" | "rolebindings" => others::role_binding(value),
        custom::DEFINITIONS => custom::set_defaults(value),
        "daemonsets" => workloads::daemon_set(value),
        "deployments" => workloads::deployment(value),
        "endpoints" => others::endpoints(value),
        "events" => events::set_defaults(value),
        "limitranges" => others::limit_range(value),
        "namespaces" => others::namespace(value),
        "nodes" => others::node(value),
        "persistentvolumeclaims" => apimachinery::set_claim_defaults(value),
        "persistentvolumes" => others::volume(value),
        "pods" => pods::set_defaults(value),
        "podtemplates" => workloads::pod_template(value),
        "replicasets" => workloads::replica_set(value),
        "replicationcontrollers" => workloads::replication_controller(value),
        "secrets" => others::secret(value),
        "services" => services::set_defaults(value),
        "storageclasses" => storage::storage_class(value),
        "statefulsets" => {
            apimachinery::set_stateful_set_defaults(value, gates.max_unavailable_stateful_set);
        }
        _ => {}
    }
}

/// Drops the fields of disabled feature gates, unless the stored object already uses them.
///
/// Upstream: `dropStatefulSetDisabledFields`
pub fn drop_disabled(kind: &Kind, gates: FeatureGates, new: &mut Draft, old: Option<&Draft>) {
    const ROLLING_UPDATE: &str = "/spec/updateStrategy/rollingUpdate";
    const MEMBER: &str = "maxUnavailable";
    if &*kind.storage != "statefulsets" || gates.max_unavailable_stateful_set {
        return;
    }
    let in_use = old
        .and_then(|old| old.value.pointer(ROLLING_UPDATE)?.get(MEMBER))
        .is_some_and(|value| !value.is_null());
    let rolling = new.value.pointer_mut(ROLLING_UPDATE);
    if let Some(rolling) = rolling.and_then(Value::as_object_mut)
        && !in_use
    {
        rolling.remove(MEMBER);
    }
}

fn default_text(map: &mut Map<String, Value>, member: &str, default: &str) {
    let text = map.get(member).and_then(Value::as_str);
    if text.is_none_or(str::is_empty) {
        map.insert(member.to_owned(), json!(default));
    }
}

fn default_number(map: &mut Map<String, Value>, member: &str, default: i64) {
    if map.get(member).is_none_or(Value::is_null) {
        map.insert(member.to_owned(), json!(default));
    }
}

/// Runs admission for a created object.
///
/// # Errors
///
/// 403 if admission forbids the object.
pub fn admit_create(kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
    match &*kind.storage {
        "pods" => {
            priority::admit(&mut draft.value).map_err(|why| {
                let metadata = draft.metadata();
                ApiError::forbidden(kind, metadata.name(), &why)
            })?;
            pods::admit_pod(&mut draft.value);
        }
        "persistentvolumeclaims" => {
            add_finalizer(draft, "kubernetes.io/pvc-protection");
        }
        "persistentvolumes" => add_finalizer(draft, "kubernetes.io/pv-protection"),
        "nodes" => taint_unready(&mut draft.value),
        "services" => services::complete(&mut draft.value),
        "namespaces" => {
            let finalizers = object_mut(&mut draft.value, "spec").entry("finalizers");
            let finalizers = finalizers.or_insert(json!([]));
            if let Some(list) = finalizers.as_array_mut()
                && !list.contains(&json!("kubernetes"))
            {
                list.push(json!("kubernetes"));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Runs admission for an updated object.
pub fn admit_update(kind: &Kind, draft: &mut Draft) {
    if &*kind.storage == "services" {
        services::complete(&mut draft.value);
    }
}

fn add_finalizer(draft: &mut Draft, finalizer: &str) {
    let list = draft
        .metadata_mut()
        .entry("finalizers")
        .or_insert(json!([]));
    if let Some(list) = list.as_array_mut()
        && !list.contains(&json!(finalizer))
    {
        list.push(json!(finalizer));
    }
}

/// Taints a node without a ready condition, so that no pods are scheduled on it.
fn taint_unready(node: &mut Value) {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let is_ready = conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Ready" && c["status"] == "True");
    if is_ready {
        return;
    }
    let key = "node.kubernetes.io/not-ready";
    let taints = object_mut(node, "spec")
        .entry("taints")
        .or_insert(json!([]));
    if let Some(list) = taints.as_array_mut()
        && !list
            .iter()
            .any(|t| t["key"] == key && t["effect"] == "NoSchedule")
    {
        list.push(json!({"key": key, "effect": "NoSchedule"}));
    }
}
