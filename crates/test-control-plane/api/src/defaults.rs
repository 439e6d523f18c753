//! Defaults and admission of incoming objects.

mod jobs;
mod others;
mod pods;
mod priority;
mod services;
mod table;

use kube_apimachinery::defaults as apimachinery;
use kube_apimachinery::schema::{Field, Type};
use serde_json::{Value, json};

use crate::custom;
use crate::kinds::{Kind, type_of};
use crate::members::object_mut;
use crate::object::Draft;
use crate::settings::FeatureGates;
use crate::status::{ApiError, ApiResult};

pub use jobs::select_own_pods;
pub use others::{count_templates, is_default};
pub use priority::FindClass;
pub use services::keep_allocated;

/// Sets the defaults of the kind. Values of a wrong type stay unchanged.
pub fn set_defaults(kind: &Kind, gates: FeatureGates, draft: &mut Draft) {
    let value = &mut draft.value;
    table::set_defaults(kind, value);
    match &*kind.storage {
        custom::DEFINITIONS => custom::set_defaults(value),
        "jobs" => jobs::set_defaults(value),
        "apiservices" => others::api_service(value),
        "limitranges" => others::limit_range(value),
        "namespaces" => others::namespace(value),
        "networkpolicies" => others::network_policy(value),
        "persistentvolumeclaims" => apimachinery::set_claim_defaults(value),
        "pods" => pods::set_defaults(value),
        "replicationcontrollers" => others::replication_controller(value),
        "secrets" => others::secret(value),
        "services" => services::set_defaults(value),
        "statefulsets" => {
            let gate = gates.max_unavailable_stateful_set;
            apimachinery::set_stateful_set_defaults(value, gate);
        }
        _ => {}
    }
    if &*kind.storage == "pods" {
        pods::name_service_account(value);
    } else if let Some(template) = template(kind, value) {
        if &*kind.storage != "statefulsets" {
            apimachinery::set_pod_template_defaults(template);
        }
        pods::name_service_account(template);
    }
}

/// Returns the pod template of a workload.
fn template<'a>(kind: &Kind, object: &'a mut Value) -> Option<&'a mut Value> {
    let of = type_of(kind)?;
    let inner = |of: &Type, member| of.field(member).and_then(Field::object_type);
    let spec = inner(of, "spec");
    let job = spec.and_then(|spec| inner(inner(spec, "jobTemplate")?, "spec"));
    let (holder, pointer) = match (job, spec) {
        (Some(job), _) => (job, "/spec/jobTemplate/spec/template"),
        (None, Some(spec)) => (spec, "/spec/template"),
        (None, None) => (of, "/template"),
    };
    let field = holder.field("template")?.object_type()?;
    object
        .pointer_mut(pointer)
        .filter(|_| field.name == "PodTemplateSpec")
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

/// Runs admission for a created object. `find_class` returns the priority classes of pods.
///
/// # Errors
///
/// 403 if admission forbids the object.
pub fn admit_create(kind: &Kind, draft: &mut Draft, find_class: FindClass<'_>) -> ApiResult<()> {
    match &*kind.storage {
        "pods" => {
            priority::admit(&mut draft.value, find_class).map_err(|why| {
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
