//! The status and the deletion of custom resource definitions, which follow each write.

use std::sync::Arc;

use kube_test_control_plane_api::custom::{self, DEFINITIONS, Definition};
use kube_test_control_plane_api::kinds::{self, Kind, Target, Verb};
use kube_test_control_plane_api::managed_fields::{self, Writer};
use kube_test_control_plane_api::members::set_or_remove;
use kube_test_control_plane_api::object::{Draft, Object};
use kube_test_control_plane_api::options::DeleteOptions;
use kube_test_control_plane_store::store::Expect;
use serde_json::Value;

use crate::handlers;
use crate::route::{Remarks, ResourceRequest};
use crate::state::{Indexed, Writes, now_text};

/// The manager of the fields in a definition's status.
const MANAGER: &str = "kube-apiserver";

/// Updates CRD status after a write, and removes a terminating CRD after its last object.
pub(crate) fn follow_write(writes: &Writes, request: &ResourceRequest) {
    let kind = &request.kind;
    if &*kind.storage == DEFINITIONS {
        let group = request.name.split_once('.');
        settle_definitions(writes, group.map(|(_, group)| group));
    } else if kind.custom.is_some() {
        let rows = writes.reads.custom_kinds();
        let custom = rows
            .by_storage(&kind.storage)
            .and_then(|row| row.custom.as_ref());
        if custom.is_some_and(|custom| custom.terminating) {
            settle_definitions(writes, Some(&kind.group));
        }
    }
}

/// Brings the status of the definitions of a group, or of all groups, up to date.
pub(crate) fn settle_definitions(writes: &Writes, group: Option<&str>) {
    while settle_one(writes, group) {}
}

/// Writes the next change of a definition. Returns false if none needs a change.
fn settle_one(writes: &Writes, group: Option<&str>) -> bool {
    let Some(kind) = kinds::by_storage(DEFINITIONS) else {
        return false;
    };
    let custom = writes.reads.custom_kinds();
    let in_group = |found: &&Indexed| {
        let of = found.object.key.name.split_once('.').map(|(_, of)| of);
        group.is_none() || of == group
    };
    let found: Vec<&Indexed> = custom.definitions().iter().filter(in_group).collect();
    let values: Vec<&Value> = found.iter().map(|found| &*found.value).collect();
    let now = now_text(writes.reads.clock());
    for Indexed { object, value, .. } in found {
        let next = custom::settle(value, &values, &now)
            .or_else(|| custom::complete_deletion(value, || delete_instances(writes, value), &now));
        if let Some(next) = next {
            write_definition(writes, kind, object, value, next, &now);
            // Also after a lost race: the winner's version may need a change.
            return true;
        }
    }
    false
}

fn write_definition(
    writes: &Writes,
    kind: &Arc<Kind>,
    object: &Object,
    old: &Value,
    next: Value,
    now: &str,
) {
    let key = object.key.clone();
    let mut draft = Draft {
        value: next,
        data: None,
    };
    let is_done = draft.metadata().is_deleting() && draft.metadata().finalizers().is_empty();
    if is_done {
        // A lost race is seen in the next round.
        drop(writes.store.delete(kind, key, object.resource_version));
        return;
    }
    let writer = Writer {
        kind,
        subresource: "status",
        manager: MANAGER,
        now,
    };
    let managed = managed_fields::track(&writer, Some(old), &draft.value);
    set_or_remove(draft.metadata_mut(), "managedFields", Some(managed));
    let expect = Expect::Version(object.resource_version);
    drop(writes.store.put(kind, key, expect, draft));
}

/// Deletes the objects of a terminating definition. Returns true if any remain.
fn delete_instances(writes: &Writes, definition: &Value) -> bool {
    let read = Definition(definition);
    let custom = writes.reads.custom_kinds();
    let stored = custom.rows().find(|row| {
        let own = row.custom.as_ref().map(|own| &*own.stored_version);
        &*row.storage == read.name() && own == Some(&row.api_version())
    });
    let row = stored.or_else(|| custom.by_storage(read.name()));
    let Some(kind) = row else {
        return false;
    };
    let (_, objects) = writes.store.list(&kind.storage, "");
    for object in objects.iter().filter(|object| !object.deleting) {
        let request = ResourceRequest {
            kind: Arc::clone(kind),
            target: Target::Object,
            namespace: object.key.namespace.to_string(),
            name: object.key.name.to_string(),
            verb: Verb::Delete,
            user: None,
            requested: Target::Object,
            remarks: Remarks::default(),
            admission_revision: None,
            begun: None,
        };
        if let Err(error) = handlers::delete_admitted(writes, &request, &DeleteOptions::default()) {
            tracing::warn!(%error, name = request.name, "deleting a custom resource failed");
        }
    }
    !writes.store.list(&kind.storage, "").1.is_empty()
}
