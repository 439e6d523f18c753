//! Revisions before their creation.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_apimachinery::json::to_go_string;
use kube_apimachinery::owner_reference::OwnerReference;
use serde_json::json;
use statefulset_controller_util::controller_revision::{ControllerRevision, HASH_LABEL};
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::data::RevisionData;
use crate::name::{controller_revision_name, hash_controller_revision};

#[cfg(test)]
mod tests;

/// A revision of a set's current template.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRevision {
    /// Name of the set, the prefix of the revision's name.
    pub parent_name: Box<str>,
    /// Name for the initial collision count.
    pub name: String,
    /// The template's labels and the hash.
    pub labels: BTreeMap<String, String>,
    /// All annotations of the set.
    pub annotations: BTreeMap<String, String>,
    /// Controller reference to the set.
    pub owner: OwnerReference,
    /// The recorded bytes.
    pub data: Arc<str>,
    /// Position in the history.
    pub revision: i64,
}

impl NewRevision {
    /// Creates a revision of `set`, with `data` as its template, the number `revision` and the name
    /// for `collision_count`.
    ///
    /// Upstream: `newRevision`, `NewControllerRevision`.
    pub fn new(
        set: &StatefulSet,
        data: &RevisionData,
        revision: i64,
        collision_count: i32,
    ) -> Self {
        let recorded = Arc::clone(data.recorded());
        let hash = hash_controller_revision(&recorded, Some(collision_count));
        let mut labels = data.template_labels();
        labels.insert(HASH_LABEL.to_owned(), hash.clone());
        Self {
            parent_name: set.name().into(),
            name: controller_revision_name(set.name(), &hash),
            labels,
            annotations: set.metadata.annotations.clone(),
            owner: set.controller_reference(),
            data: recorded,
            revision,
        }
    }

    /// Returns the name for another collision count. The labels keep the first hash.
    pub fn name_for(&self, collision_count: i32) -> String {
        let hash = hash_controller_revision(&self.data, Some(collision_count));
        controller_revision_name(&self.parent_name, &hash)
    }

    /// Returns the body to POST under `name`, with the recorded data byte for byte.
    #[expect(clippy::indexing_slicing, reason = "metadata is an object")]
    pub fn body(&self, name: &str) -> String {
        let mut metadata = json!({
            "name": name,
            "labels": self.labels,
            "ownerReferences": [self.owner],
        });
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        let (data, revision) = (&self.data, self.revision);
        let metadata = to_go_string(&metadata);
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{metadata},"data":{data},"revision":{revision}}}"#
        )
    }
}

/// Returns the number for the next revision of a sorted history; 1 if it is empty. The number after
/// the maximum is the minimum, as in Go; API servers reject a revision below 0.
///
/// Upstream: `nextRevision`.
pub fn next_revision(revisions: &[Arc<ControllerRevision>]) -> i64 {
    revisions
        .last()
        .map_or(1, |newest| newest.revision.wrapping_add(1))
}
