//! The conditions of a terminating namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::members::object_mut;
use kube_test_control_plane_api::object::Object;

/// The remaining objects in a namespace.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// Number of objects by resource and group.
    resources: BTreeMap<String, usize>,
    /// Number of objects held by each finalizer.
    finalizers: BTreeMap<String, usize>,
}

impl Remaining {
    /// Counts the remaining objects of a kind.
    pub(super) fn count(&mut self, kind: &Kind, objects: &[Arc<Object>]) {
        if objects.is_empty() {
            return;
        }
        let resource = format!("{}.{}", kind.plural, kind.group);
        self.resources.insert(resource, objects.len());
        for object in objects {
            for finalizer in object.draft().metadata().finalizers() {
                *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    fn list(counts: &BTreeMap<String, usize>, verb: &str) -> Option<String> {
        let list: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{name} {verb} {count} resource instances"))
            .collect();
        (!list.is_empty()).then(|| list.join(", "))
    }

    /// Returns type, status, reason and message of each condition.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let fine = |kind, reason, message: &str| (kind, false, reason, message.to_owned());
        let content = match Self::list(&self.resources, "has") {
            Some(list) => (
                "NamespaceContentRemaining",
                true,
                "SomeResourcesRemain",
                format!("Some resources are remaining: {list}"),
            ),
            None => fine(
                "NamespaceContentRemaining",
                "ContentRemoved",
                "All content successfully removed",
            ),
        };
        let finalizers = match Self::list(&self.finalizers, "in") {
            Some(list) => (
                "NamespaceFinalizersRemaining",
                true,
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {list}"),
            ),
            None => fine(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        };
        [
            fine(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            fine(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            fine(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            content,
            finalizers,
        ]
    }
}

/// Updates a namespace's conditions. Returns true if any changed.
pub(super) fn update(namespace: &mut Value, remaining: &Remaining, now: &str) -> bool {
    let status = object_mut(namespace, "status");
    let list = status.entry("conditions").or_insert(json!([]));
    let Some(list) = list.as_array_mut() else {
        return false;
    };
    let mut changed = false;
    for (kind, is_true, reason, message) in remaining.conditions() {
        let mut condition = json!({
            "type": kind,
            "status": if is_true { "True" } else { "False" },
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        });
        let Some(old) = list.iter_mut().find(|c| c["type"] == kind) else {
            list.push(condition);
            changed = true;
            continue;
        };
        if old["status"] == condition["status"] {
            condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
        }
        changed |= *old != condition;
        *old = condition;
    }
    changed
}
