//! An in-memory history whose cache shows every write immediately.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a fake may panic on the mistakes in a test"
)]

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::{Call, ObjectStore, RequestTracker};

use crate::controller_history::History;
use crate::error::Error;
use crate::new_revision::NewRevision;

/// In-memory revisions.
///
/// Upstream: `NewFakeHistory`.
pub struct FakeHistory {
    /// The revisions, with their posted JSON.
    pub revisions: ObjectStore<ControllerRevision>,
    /// Counts and fails calls.
    pub tracker: Arc<RequestTracker>,
}

impl Default for FakeHistory {
    fn default() -> Self {
        Self {
            revisions: ObjectStore::new("controllerrevisions", Arc::new(Indexer::new())),
            tracker: Arc::default(),
        }
    }
}

impl FakeHistory {
    /// Changes a stored revision.
    fn edit(
        &self,
        revision: &ControllerRevision,
        edit: impl FnOnce(&mut Value),
    ) -> Result<Arc<ControllerRevision>, Error> {
        let mut live = self.revisions.read(&revision.namespace, &revision.name)?;
        edit(&mut live.json);
        Ok(self.revisions.put(live.json))
    }
}

#[async_trait]
impl History for FakeHistory {
    fn cache(&self) -> &Indexer<ControllerRevision> {
        self.revisions.cache()
    }

    async fn create_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &NewRevision,
        collision_count: &mut i32,
    ) -> Result<Arc<ControllerRevision>, Error> {
        loop {
            let _request = self.tracker.begin(Call::CreateRevision)?;
            let body = revision.body(&revision.name_for(*collision_count));
            let candidate =
                ControllerRevision::decode(&body).expect("a revision's body is a revision");
            // Any taken name counts as a collision, even with the same data, like upstream's fake;
            // the real history compares the data.
            if self
                .revisions
                .cache()
                .get(set.namespace(), &candidate.name)
                .is_some()
            {
                *collision_count = collision_count.wrapping_add(1);
                continue;
            }
            let mut json: Value = serde_json::from_str(&body).expect("a revision's body is JSON");
            json["metadata"]["namespace"] = Value::from(set.namespace());
            return Ok(self.revisions.create(json)?);
        }
    }

    async fn update_controller_revision(
        &self,
        _set: &StatefulSet,
        revision: &ControllerRevision,
        new_revision: i64,
    ) -> Result<Arc<ControllerRevision>, Error> {
        let _request = self.tracker.begin(Call::UpdateRevision)?;
        self.edit(revision, |json| {
            json["revision"] = Value::from(new_revision);
        })
    }

    async fn delete_controller_revision(&self, revision: &ControllerRevision) -> Result<(), Error> {
        let _request = self.tracker.begin(Call::DeleteRevision)?;
        let stored = self
            .revisions
            .cache()
            .get(&revision.namespace, &revision.name);
        let is_changed = |stored: &Arc<ControllerRevision>| {
            stored.uid != revision.uid || stored.resource_version != revision.resource_version
        };
        if stored.as_ref().is_some_and(is_changed) {
            let message = format!("controllerrevisions {:?} has changed", revision.name);
            return Err(ApiError::api(409, "Conflict", message).into());
        }
        Ok(self.revisions.delete(&revision.namespace, &revision.name)?)
    }

    async fn adopt_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<Arc<ControllerRevision>, Error> {
        if let Some(owner) = &revision.controller {
            return Err(Error::Owned(Box::new(owner.clone())));
        }
        let owner = json!(set.controller_reference());
        self.edit(
            revision,
            |json| match &mut json["metadata"]["ownerReferences"] {
                Value::Array(owners) => owners.push(owner),
                none => *none = json!([owner]),
            },
        )
    }

    async fn release_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<(), Error> {
        let uid = set.uid().to_owned();
        let released = self.edit(revision, |json| {
            if let Value::Array(owners) = &mut json["metadata"]["ownerReferences"] {
                owners.retain(|owner| owner["uid"].as_str() != Some(&uid));
            }
        });
        match released {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}
