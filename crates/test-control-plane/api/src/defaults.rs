//! Defaults and admission of incoming objects.

mod aliases;
mod claims;
mod disabled;
mod families;
mod holders;
mod jobs;
mod new_pods;
mod others;
mod pods;
mod priority;
mod runtime_class;
mod service_accounts;
mod services;
mod table;

use kube_apimachinery::defaults as apimachinery;
use kube_apimachinery::schema::{Field, Type, Version};
use serde_json::{Value, json};

use crate::custom;
use crate::kinds::{Kind, Target, type_of};
use crate::members::object_mut;
use crate::object::Draft;
use crate::settings::{ServerGates, UnknownFields};
use crate::status::{ApiError, ApiResult, FieldError};

pub use jobs::{is_labelled, label_like_pods, select_own_pods};
pub(crate) use others::convert_daemon_set;
pub use others::{count_templates, is_default};
pub use priority::FindClass;
pub use runtime_class::{admit_runtime_class, check_overhead};
pub use service_accounts::{choose_account, is_mirror, use_account};

/// Sets the defaults of the kind. Values of a wrong type stay unchanged.
pub fn set_defaults(
    kind: &Kind,
    gates: ServerGates,
    unknown_fields: UnknownFields,
    draft: &mut Draft,
) {
    let value = &mut draft.value;
    if unknown_fields == UnknownFields::Prune {
        prune_volumes(kind, value);
    }
    if let Some(of) = type_of(kind) {
        holders::fill(of, value);
    }
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
    let template = template_path(kind).and_then(|path| value.pointer_mut(path));
    if let Some(template) = template {
        if &*kind.storage != "statefulsets" {
            apimachinery::set_pod_template_defaults(template);
        }
        aliases::of_pod(template);
    }
}

/// Drops the unknown fields of volumes, which would count as their sources.
fn prune_volumes(kind: &Kind, value: &mut Value) {
    let pod = match &*kind.storage {
        "pods" => Some(value),
        _ => template_path(kind).and_then(|path| value.pointer_mut(path)),
    };
    let volumes = pod.and_then(|pod| pod.pointer_mut("/spec/volumes")?.as_array_mut());
    for volume in volumes
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        volume.retain(|name, _| {
            Version::NEWEST
                .find_type("Volume")
                .is_none_or(|of| of.field(name).is_some())
        });
    }
}

/// Sets the defaults that depend on the time.
pub fn set_times(kind: &Kind, now: &str, draft: &mut Draft) {
    if &*kind.storage == "resourceslices" {
        others::resource_slice(&mut draft.value, now);
    }
}

/// Returns the path of the pod template of a workload.
fn template_path(kind: &Kind) -> Option<&'static str> {
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
    Some(pointer).filter(|_| field.name == "PodTemplateSpec")
}

/// Drops the fields of disabled feature gates, unless the stored object already uses them.
pub fn drop_disabled(kind: &Kind, gates: ServerGates, new: &mut Draft, old: Option<&Draft>) {
    let old = old.map(|old| &old.value);
    let new = &mut new.value;
    disabled::of_kind(kind, new, old);
    match &*kind.storage {
        "endpointslices" => others::drop_topology(new, old),
        "persistentvolumeclaims" => claims::set_sources(new, old),
        "resourceclaims" => others::drop_deallocated(new, old),
        "serviceaccounts" => others::drop_all_but_names(new),
        "statefulsets" if !gates.max_unavailable_stateful_set => drop_max_unavailable(new, old),
        _ => {}
    }
    let holder = match &*kind.storage {
        "pods" => Some(""),
        _ => template_path(kind),
    };
    let Some(path) = holder else { return };
    let stored = old.and_then(|old| old.pointer(path)?.get("spec"));
    if let Some(spec) = new
        .pointer_mut(path)
        .and_then(|holder| holder.get_mut("spec"))
    {
        disabled::of_pod(spec, stored);
    }
}

/// Upstream: `dropStatefulSetDisabledFields`.
fn drop_max_unavailable(new: &mut Value, old: Option<&Value>) {
    const ROLLING_UPDATE: &str = "/spec/updateStrategy/rollingUpdate";
    const MEMBER: &str = "maxUnavailable";
    let in_use = old
        .and_then(|old| old.pointer(ROLLING_UPDATE)?.get(MEMBER))
        .is_some_and(|value| !value.is_null());
    let rolling = new.pointer_mut(ROLLING_UPDATE);
    if let Some(rolling) = rolling.and_then(Value::as_object_mut)
        && !in_use
    {
        rolling.remove(MEMBER);
    }
}

/// Runs admission for a created object. `find_class` returns the priority classes of pods. Runs
/// again after webhooks changed the object.
///
/// # Errors
///
/// 403 if admission forbids the object.
pub fn admit_create(kind: &Kind, draft: &mut Draft, find_class: FindClass<'_>) -> ApiResult<()> {
    match &*kind.storage {
        "pods" => {
            priority::admit(&mut draft.value, find_class).map_err(|why| {
                let metadata = draft.metadata();
                ApiError::forbidden(kind, metadata.shown_name(), &why)
            })?;
            pods::add_tolerations(&mut draft.value);
        }
        "persistentvolumeclaims" => {
            add_finalizer(draft, "kubernetes.io/pvc-protection");
        }
        "persistentvolumes" => add_finalizer(draft, "kubernetes.io/pv-protection"),
        "volumeattributesclasses" => add_finalizer(draft, "kubernetes.io/vac-protection"),
        "nodes" => taint_unready(&mut draft.value),
        _ => {}
    }
    Ok(())
}

/// Completes the addresses of a service before their allocation. Does nothing to other objects.
///
/// # Errors
///
/// The request contradicts itself or the cluster.
pub fn complete_addresses(
    kind: &Kind,
    draft: &mut Draft,
    old: Option<&Draft>,
) -> Result<(), Vec<FieldError>> {
    if &*kind.storage != "services" {
        return Ok(());
    }
    families::complete(&mut draft.value, old.map(|old| &old.value))
}

/// Removes fields that the new type of a service doesn't need. Does nothing to other objects.
pub fn drop_unneeded(kind: &Kind, draft: &mut Draft, old: &Draft) {
    if &*kind.storage == "services" {
        services::drop_unneeded(&mut draft.value, &old.value);
    }
}

/// Sets the first status of an admitted object at the time `now`, and the fields that follow from its
/// name.
pub fn begin(kind: &Kind, draft: &mut Draft, now: &str) {
    match &*kind.storage {
        "pods" => pods::begin(&mut draft.value, now),
        "namespaces" => {
            others::namespace(&mut draft.value);
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
}

/// Derives fields of an object that is about to be created from others, and returns warnings.
pub fn prepare_created(kind: &Kind, draft: &mut Draft) -> Vec<String> {
    if &*kind.storage != "pods" {
        return Vec::new();
    }
    new_pods::select_label_keys(&mut draft.value);
    new_pods::take_app_armor(&mut draft.value)
}

/// Runs admission for an updated object.
pub fn admit_update(kind: &Kind, target: Target, old: &Draft, draft: &mut Draft) {
    if &*kind.storage == "pods" && target == Target::Object {
        priority::keep(&old.value, &mut draft.value);
        pods::add_tolerations(&mut draft.value);
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
