//! Shared steps of all writes: identity of new objects, protected fields, and the commit.

pub(crate) mod conversion;
mod decoding;
mod scale;
mod stored_size;
mod tracking;

use std::sync::Arc;

use bytes::Bytes;
use kube_test_control_plane_api::custom::{self, DEFINITIONS};
use kube_test_control_plane_api::kinds::{Kind, Subresource, Target, Trait, registry_key, stored};
use kube_test_control_plane_api::members::{object_mut, set_or_remove};
use kube_test_control_plane_api::object::{Draft, Object};
use kube_test_control_plane_api::settings::EmulatedVersion;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::{defaults, normalize, views};
use kube_test_control_plane_store::clock::Clock;
use serde_json::{Value, json};

use crate::route::ResourceRequest;
use crate::state::{Reads, Writes, now_text};

pub(crate) use conversion::Earlier;
pub(crate) use decoding::{
    check_patch, decode, fit_to_store, is_scaled_custom, normalize, normalize_applied, posted,
    to_stored, undecodable,
};
pub(crate) use scale::{live_scale, scale_of};
pub(crate) use stored_size::check_stored_size;
pub(crate) use tracking::{keep_reset, keep_times, served_value, track};

/// Returns the text of a stored object in the form that `kind` serves.
///
/// # Errors
///
/// A custom resource can't be converted; this also applies to the other conversions in this file.
pub(crate) async fn served_text(
    reads: &Reads,
    kind: &Kind,
    object: &Object,
    earlier: Earlier,
) -> ApiResult<Bytes> {
    if !kind.has(Trait::View) {
        return Ok(object.text().clone());
    }
    served_draft(reads, kind, object.draft(), earlier).await
}

/// Returns the text of a draft in the form that `kind` serves.
pub(crate) async fn served_draft(
    reads: &Reads,
    kind: &Kind,
    mut draft: Draft,
    earlier: Earlier,
) -> ApiResult<Bytes> {
    conversion::to_served(reads, kind, &mut draft, earlier).await?;
    views::to_served(kind, &mut draft.value);
    Ok(draft.encode().into())
}

/// Returns a stored object in the form that handlers work on: a custom resource in the request's
/// version.
pub(crate) async fn handled_form(reads: &Reads, kind: &Kind, object: &Object) -> ApiResult<Draft> {
    let mut draft = object.draft();
    conversion::to_served(reads, kind, &mut draft, Earlier::Used).await?;
    Ok(draft)
}

/// Converts a custom resource from the version of the request to the stored one.
pub(crate) async fn stored_form(reads: &Reads, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
    conversion::to_stored(reads, kind, draft).await
}

/// An object after a write.
pub(crate) struct Written {
    /// The object as JSON.
    pub text: Bytes,
    /// True if the write created it.
    pub created: bool,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Removes what a new object can't bring along, and sets its namespace.
///
/// Upstream: `WipeObjectMetaSystemFields`, `EnsureObjectNamespaceMatchesRequestNamespace`
pub(crate) fn wipe(kind: &Kind, namespace: &str, draft: &mut Draft) {
    let metadata = draft.metadata_mut();
    for member in [
        "selfLink",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        metadata.remove(member);
    }
    set_namespace(kind, namespace, draft);
}

/// Sets the namespace of a new object.
pub(crate) fn set_namespace(kind: &Kind, namespace: &str, draft: &mut Draft) {
    let namespace = kind.namespaced.then(|| json!(namespace));
    set_or_remove(draft.metadata_mut(), "namespace", namespace);
}

/// Removes the status of a new object, which only controllers set. A pod keeps its class of quality.
pub(crate) fn drop_status(kind: &Kind, draft: &mut Draft) {
    if kind.serves(Subresource::Status)
        && &*kind.storage != "nodes"
        && let Some(map) = draft.value.as_object_mut()
    {
        let status = map.remove("status");
        let class = status.as_ref().and_then(|status| status.get("qosClass"));
        if let Some(class) = class.filter(|class| &*kind.storage == "pods" && !class.is_null()) {
            map.insert("status".to_owned(), json!({"qosClass": class}));
        }
    }
}

/// Prepares an admitted object: identity, first status. `is_labelled` is true for a job that was sent
/// with labels.
pub(crate) fn prepare_create(
    writes: &Writes,
    kind: &Arc<Kind>,
    draft: &mut Draft,
    is_labelled: bool,
) {
    let uid = writes.random.new_uid();
    let now = now_text(writes.reads.clock());
    let metadata = draft.metadata_mut();
    metadata.insert("uid".to_owned(), json!(uid));
    metadata.insert("creationTimestamp".to_owned(), json!(now));
    if kind.has(Trait::Generation) {
        metadata.insert("generation".to_owned(), json!(1));
    }
    match &*kind.storage {
        DEFINITIONS => custom::note_stored_version(&mut draft.value),
        "daemonsets" => defaults::count_templates(&mut draft.value, None),
        "jobs" => defaults::select_own_pods(&mut draft.value, !is_labelled),
        "persistentvolumes" => {
            let status = object_mut(&mut draft.value, "status");
            status.insert("lastPhaseTransitionTime".to_owned(), json!(now));
        }
        _ => {}
    }
    defaults::begin(kind, draft, &now);
}

/// Sets the defaults of the kind.
pub(crate) fn set_defaults(reads: &Reads, kind: &Kind, draft: &mut Draft) {
    let behaviour = reads.behaviour();
    defaults::set_defaults(kind, behaviour.gates, behaviour.unknown_fields, draft);
    defaults::set_times(kind, &now_text(reads.clock()), draft);
}

/// Records the time of a volume's phase change, unless the client sets it.
pub(crate) fn note_phase(clock: &dyn Clock, kind: &Kind, new: &mut Draft, old: &Draft) {
    let is_same = |pointer: &str| new.value.pointer(pointer) == old.value.pointer(pointer);
    let time = "/status/lastPhaseTransitionTime";
    if &*kind.storage != "persistentvolumes" || is_same("/status/phase") || !is_same(time) {
        return;
    }
    let now = json!(now_text(clock));
    object_mut(&mut new.value, "status").insert("lastPhaseTransitionTime".to_owned(), now);
}

/// Checks the namespace of a new object against the URL. The namespace `default` matches an empty
/// one.
///
/// That of a cluster-scoped object doesn't matter.
pub(crate) fn check_namespace(request: &ResourceRequest, draft: &Draft) -> ApiResult<()> {
    if !request.kind.namespaced {
        return Ok(());
    }
    let found = draft.metadata().namespace();
    let is_none = found.is_empty() || request.namespace.is_empty() && found == "default";
    if is_none || found == request.namespace {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}

/// Checks the name and namespace of an updated object against the URL.
pub(crate) fn check_name(request: &ResourceRequest, draft: &Draft) -> ApiResult<()> {
    let (wanted, found) = (&request.name, draft.metadata().name());
    if found.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({wanted} based on URL) was undeterminable: name must be \
             provided"
        )));
    }
    if found != wanted {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({wanted})"
        )));
    }
    check_namespace(request, draft)
}

/// Returns the 409 for an object with another uid than requested.
pub(crate) fn other_uid(
    request: &ResourceRequest,
    dry_run: bool,
    wanted: &str,
    found: &str,
) -> ApiError {
    let (kind, name) = (&request.kind, &request.name);
    let key = registry_key(stored(kind), &request.namespace, name);
    // The keys of dry runs have no prefix.
    let key = match key.strip_prefix("/registry") {
        Some(key) if dry_run => key,
        _ => &key,
    };
    ApiError::other_uid(kind, name, key, wanted, found)
}

/// Restores the stored fields that an update of `target` may not change.
pub(crate) fn prepare_update(kind: &Kind, target: Target, new: &mut Draft, old: &Draft) {
    let before = old.value.get("metadata").cloned().unwrap_or(Value::Null);
    let metadata = new.metadata_mut();
    for member in [
        "namespace",
        "creationTimestamp",
        "generation",
        "resourceVersion",
    ] {
        set_or_remove(metadata, member, before.get(member).cloned());
    }
    keep_deletion(metadata, &before);
    match target {
        Target::Part(Subresource::Status) => {
            keep_all_but_status(kind, new, old);
            match &*kind.storage {
                "daemonsets" => defaults::count_templates(&mut new.value, Some(&old.value)),
                // The labels that the status of a job lacks are those of its pods again.
                "jobs" if !defaults::is_labelled(&new.value) => {
                    defaults::label_like_pods(&mut new.value);
                }
                _ => {}
            }
        }
        Target::Part(Subresource::Approval) => {
            let conditions = new.value.pointer("/status/conditions").cloned();
            keep_all_but_status(kind, new, old);
            keep(new, old, "status");
            set_or_remove(
                object_mut(&mut new.value, "status"),
                "conditions",
                conditions,
            );
        }
        Target::Part(Subresource::EphemeralContainers) => {
            let containers = new.value.pointer("/spec/ephemeralContainers").cloned();
            keep_all(new, old);
            let spec = object_mut(&mut new.value, "spec");
            set_or_remove(spec, "ephemeralContainers", containers);
        }
        Target::Part(Subresource::Resize) => {
            keep_all_but_sizes(new, old);
        }
        Target::Part(Subresource::Finalize) => {
            let finalizers = new.value.pointer("/spec/finalizers").cloned();
            keep_all_but_status(kind, new, old);
            keep(new, old, "status");
            set_or_remove(object_mut(&mut new.value, "spec"), "finalizers", finalizers);
        }
        _ => {
            if kind.serves(Subresource::Status) {
                keep(new, old, "status");
            }
            match &*kind.storage {
                "certificatesigningrequests" | "namespaces" => keep(new, old, "spec"),
                "daemonsets" => defaults::count_templates(&mut new.value, Some(&old.value)),
                "endpointslices" => count_slice(kind, new, old),
                DEFINITIONS => custom::note_stored_version(&mut new.value),
                _ => {}
            }
        }
    }
    remove_empty(new.metadata_mut());
}

/// Keeps an existing deletion. A forged one stays and fails validation.
///
/// Upstream: `ValidateObjectMetaAccessorUpdate`, the part that changes the new object
fn keep_deletion(metadata: &mut serde_json::Map<String, Value>, before: &Value) {
    let time = "deletionTimestamp";
    let known = before.get(time).filter(|time| !time.is_null());
    if let Some(known) = known {
        metadata.insert(time.to_owned(), known.clone());
    }
    let period = "deletionGracePeriodSeconds";
    if metadata.get(period).is_none_or(Value::is_null) {
        set_or_remove(metadata, period, before.get(period).cloned());
    }
}

/// Increments the generation on changes of the spec, and for deployments of the annotations. Kinds
/// without a spec have other fields that count.
pub(crate) fn count_generation(kind: &Kind, new: &mut Draft, old: &Draft) {
    let differs = |pointer: &str| new.value.pointer(pointer) != old.value.pointer(pointer);
    if let Some(custom) = &kind.custom {
        let has_status = kind.serves(Subresource::Status);
        if custom.counts(has_status, &new.value, &old.value) {
            bump_generation(new, old);
        }
        return;
    }
    let counted: &[&str] = match &*kind.storage {
        "deployments" => &["/spec", "/metadata/annotations"],
        "endpointslices" => &["/addressType", "/endpoints", "/ports", "/metadata/labels"],
        "podtemplates" => &["/template"],
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => &["/webhooks"],
        _ => &["/spec"],
    };
    if kind.has(Trait::Generation) && counted.iter().any(|pointer| differs(pointer)) {
        bump_generation(new, old);
    }
}

/// Counts a change of a slice of endpoints. The fields of disabled gates, which go next, count as well.
fn count_slice(kind: &Kind, new: &mut Draft, old: &Draft) {
    let mut counted = new.clone();
    normalize::drop_empty_lists(kind, &mut counted, EmulatedVersion::NEWEST);
    count_generation(kind, &mut counted, old);
    if counted.metadata().generation() > old.metadata().generation() {
        bump_generation(new, old);
    }
}

fn bump_generation(new: &mut Draft, old: &Draft) {
    let generation = old.metadata().generation() + 1;
    let metadata = new.metadata_mut();
    metadata.insert("generation".to_owned(), json!(generation));
}

fn keep(new: &mut Draft, old: &Draft, member: &str) {
    if let Some(map) = new.value.as_object_mut() {
        set_or_remove(map, member, old.value.get(member).cloned());
    }
}

fn keep_all(new: &mut Draft, old: &Draft) {
    let uid = new.value.pointer("/metadata/uid").cloned();
    *new = old.clone();
    set_or_remove(new.metadata_mut(), "uid", uid);
}

/// Keeps all but the resources of a pod's containers. Added, removed, renamed and reordered containers
/// stay for the validation.
///
/// Upstream: `dropNonResizeUpdates`
fn keep_all_but_sizes(new: &mut Draft, old: &Draft) {
    const LISTS: [&str; 2] = ["containers", "initContainers"];
    let containers = |pod: &Draft, name: &str| {
        let found = pod.value.pointer(&format!("/spec/{name}"));
        found.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let resized = LISTS.map(|name| (name, containers(new, name), containers(old, name)));
    if resized.iter().any(|(_, new, old)| new.len() != old.len()) {
        return;
    }
    let managers = new.value.pointer("/metadata/managedFields").cloned();
    keep_all(new, old);
    set_or_remove(new.metadata_mut(), "managedFields", managers);
    for (name, new_list, old_list) in resized {
        let is_same = |(new, old): (&Value, &Value)| new["name"] == old["name"];
        let list = if new_list.iter().zip(&old_list).all(is_same) {
            let sized = old_list.into_iter().zip(&new_list);
            sized
                .map(|(old, new)| resized_container(old, new))
                .collect()
        } else {
            new_list
        };
        let list = Some(Value::Array(list)).filter(|list| *list != json!([]));
        set_or_remove(object_mut(&mut new.value, "spec"), name, list);
    }
}

/// Returns a container with the resources of another one.
fn resized_container(mut container: Value, from: &Value) -> Value {
    if let Some(container) = container.as_object_mut() {
        for member in ["resources", "resizePolicy"] {
            set_or_remove(container, member, from.get(member).cloned());
        }
    }
    container
}

fn keep_all_but_status(kind: &Kind, new: &mut Draft, old: &Draft) {
    let status = new.value.get("status").cloned();
    let mut metadata = new.value.get("metadata").cloned();
    if kind.custom.is_some() {
        // Of a custom resource's metadata, only the managers may change with the status.
        let managers = metadata
            .as_ref()
            .and_then(|m| m.get("managedFields"))
            .cloned();
        metadata = old.value.get("metadata").cloned();
        if let Some(members) = metadata.as_mut().and_then(Value::as_object_mut) {
            set_or_remove(members, "managedFields", managers);
        }
    }
    *new = old.clone();
    if let Some(map) = new.value.as_object_mut() {
        set_or_remove(map, "metadata", metadata);
        set_or_remove(map, "status", status);
    }
    match &*kind.storage {
        "pods" => {
            let owners = old.value.pointer("/metadata/ownerReferences").cloned();
            set_or_remove(new.metadata_mut(), "ownerReferences", owners);
            let status = object_mut(&mut new.value, "status");
            if status
                .get("qosClass")
                .is_none_or(|class| class.is_null() || class == "")
            {
                let class = old.value.pointer("/status/qosClass").cloned();
                set_or_remove(status, "qosClass", class);
            }
        }
        "deployments" => {
            let labels = old.value.pointer("/metadata/labels").cloned();
            set_or_remove(new.metadata_mut(), "labels", labels);
        }
        _ => {}
    }
}

/// Removes duplicate owner references, keeping the first.
fn merge_owners(metadata: &mut serde_json::Map<String, Value>) {
    let Some(owners) = metadata
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut)
        .filter(|owners| owners.len() > 1)
    else {
        return;
    };
    let mut seen: Vec<Value> = Vec::with_capacity(owners.len());
    owners.retain(|owner| {
        let is_new = !seen.contains(owner);
        if is_new {
            seen.push(owner.clone());
        }
        is_new
    });
}

/// Removes empty maps and lists from metadata, like `omitempty`.
pub(crate) fn remove_empty(metadata: &mut serde_json::Map<String, Value>) {
    merge_owners(metadata);
    for member in ["labels", "annotations"] {
        if let Some(map) = metadata.get_mut(member).and_then(Value::as_object_mut) {
            for value in map.values_mut().filter(|value| value.is_null()) {
                *value = json!("");
            }
        }
    }
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    });
}
