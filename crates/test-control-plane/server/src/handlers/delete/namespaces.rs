//! Deletion of namespaces, which are emptied first.

use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::members::{object_mut, set_or_remove};
use kube_test_control_plane_api::object::{Draft, Object};
use kube_test_control_plane_api::options::{DeleteOptions, Propagation};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_store::clock::Clock;
use serde_json::{Value, json};

use super::FOREGROUND;
use super::ORPHAN;
use crate::state::now_text;

/// Reports whether a terminating namespace is empty.
pub(super) fn is_empty(draft: &Draft) -> bool {
    let finalizers = draft.value.pointer("/spec/finalizers");
    let finalizers = finalizers.and_then(Value::as_array);
    draft.metadata().is_deleting() && finalizers.is_none_or(Vec::is_empty)
}

/// Checks preconditions with the messages for namespaces.
pub(super) fn check_preconditions(
    kind: &Kind,
    object: &Object,
    options: &DeleteOptions,
) -> ApiResult<()> {
    let version = object.resource_version.to_string();
    for (what, wanted, found) in [
        ("UID", &options.uid, &*object.uid),
        (
            "ResourceVersion",
            &options.resource_version,
            version.as_str(),
        ),
    ] {
        if let Some(wanted) = wanted
            && wanted != found
        {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: \
                 {found}"
            );
            return Err(ApiError::conflict(kind, &object.key.name, &why));
        }
    }
    Ok(())
}

/// Starts the termination of a namespace. It is removed later, when it is empty.
///
/// Upstream: `REST.Delete` of namespaces.
pub(super) fn begin_termination(clock: &dyn Clock, draft: &mut Draft, options: &DeleteOptions) {
    let now = json!(now_text(clock));
    let mut finalizers = draft.metadata().finalizers();
    for (finalizer, propagation) in [
        (FOREGROUND, Propagation::Foreground),
        (ORPHAN, Propagation::Orphan),
    ] {
        match options.of_namespace.map(|wanted| wanted == propagation) {
            Some(true) if !finalizers.contains(&finalizer) => finalizers.push(finalizer),
            Some(false) => finalizers.retain(|known| *known != finalizer),
            _ => {}
        }
    }
    let finalizers = Some(json!(finalizers)).filter(|_| !finalizers.is_empty());
    let metadata = draft.metadata_mut();
    set_or_remove(metadata, "finalizers", finalizers);
    metadata.insert("deletionTimestamp".to_owned(), now);
    object_mut(&mut draft.value, "status").insert("phase".to_owned(), json!("Terminating"));
}
