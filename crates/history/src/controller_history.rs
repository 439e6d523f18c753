//! A set's revisions in the API server and in the cache.
//!
//! Upstream: `controller_history.go`.

use std::sync::Arc;

use async_trait::async_trait;
use kube_apimachinery::json::Document;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::selector::Selector;
use serde_json::json;
use statefulset_client::backoff::{DEFAULT_BACKOFF, Jitter, wait};
use statefulset_client::cache::indexer::{CachedObject, IndexKey, Indexer};
use statefulset_client::error::Error as ApiError;
use statefulset_client::resource::CONTROLLER_REVISIONS;
use statefulset_controller_util::consistency::TrackedResource::ControllerRevisions;
use statefulset_controller_util::controller_revision::{self, ControllerRevision};
use statefulset_controller_util::pod_control::{adoption_patch, release_patch};
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::tracked_client::TrackedClient;

use crate::error::Error;
use crate::new_revision::NewRevision;

#[cfg(test)]
mod tests;

/// Sorts revisions from the oldest to the newest: by number, then by creation time, then by name.
///
/// Upstream: `SortControllerRevisions`.
pub fn sort_controller_revisions(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_by(|a, b| {
        let a = (a.revision, a.creation_timestamp, &a.name);
        a.cmp(&(b.revision, b.creation_timestamp, &b.name))
    });
}

/// The history of a set.
///
/// Upstream: `history.Interface`.
#[async_trait]
pub trait History: Send + Sync {
    /// Returns the cache of revisions.
    fn cache(&self) -> &Indexer<ControllerRevision>;

    /// Returns the cached revisions that the selector selects and that the set or no object
    /// controls, in no particular order.
    ///
    /// Upstream: `ListControllerRevisions`, `realHistory.ListControllerRevisions`.
    fn list_controller_revisions(
        &self,
        set: &StatefulSet,
        selector: &Selector,
    ) -> Vec<Arc<ControllerRevision>> {
        let cache = self.cache();
        let mut revisions = cache.by_index(&set.owned_index_key());
        revisions.extend(cache.by_index(&IndexKey::orphans(set.namespace())));
        revisions.retain(|revision| selector.matches(&revision.labels));
        revisions
    }

    /// Creates a revision, with a higher collision count and so a new name for as long as the name
    /// belongs to a revision with other data. Returns an existing revision of the same name and data
    /// unchanged.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    ///
    /// Upstream: `CreateControllerRevision`.
    async fn create_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &NewRevision,
        collision_count: &mut i32,
    ) -> Result<Arc<ControllerRevision>, Error>;

    /// Changes a revision's number. Retries a conflict on a fresh copy.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport; the last conflict after 4 attempts.
    ///
    /// Upstream: `UpdateControllerRevision`.
    async fn update_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
        new_revision: i64,
    ) -> Result<Arc<ControllerRevision>, Error>;

    /// Deletes a revision if its uid and resource version are unchanged.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport: a conflict if the revision has changed, not
    /// found if it is gone.
    ///
    /// Upstream: `DeleteControllerRevision`.
    async fn delete_controller_revision(&self, revision: &ControllerRevision) -> Result<(), Error>;

    /// Makes the set the controller of an orphaned revision and returns the adopted revision.
    ///
    /// # Errors
    ///
    /// The revision has a controller, or the API server or the transport failed. A missing revision
    /// is an error too.
    ///
    /// Upstream: `AdoptControllerRevision`.
    async fn adopt_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<Arc<ControllerRevision>, Error>;

    /// Removes the set as the controller of a revision. A missing revision, or one that the server
    /// rejects as invalid because the set no longer owns it, counts as released.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    ///
    /// Upstream: `ReleaseControllerRevision`.
    async fn release_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<(), Error>;
}

/// Reads revisions from a cache and writes them through the API.
///
/// Upstream: `realHistory`.
pub struct RealHistory {
    client: TrackedClient,
    cache: Arc<Indexer<ControllerRevision>>,
    jitter: Arc<dyn Jitter>,
}

impl RealHistory {
    /// Creates a history; `jitter` spreads its retries.
    ///
    /// Upstream: `NewHistory`.
    pub fn new(
        client: TrackedClient,
        cache: Arc<Indexer<ControllerRevision>>,
        jitter: Arc<dyn Jitter>,
    ) -> Self {
        Self {
            client,
            cache,
            jitter,
        }
    }

    /// Tries once to renumber the live revision.
    async fn renumber(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
        new_revision: i64,
    ) -> Result<(), Error> {
        let (key, name) = (revision.key(), &revision.name);
        let document = self.client.read_document(ControllerRevisions, &key).await?;
        let live = decode(&document)?;
        if live.uid != revision.uid || live.data != revision.data {
            let resource = CONTROLLER_REVISIONS.group_resource();
            return Err(ApiError::conflict(resource, name, "the revision was replaced").into());
        }
        if live.revision == new_revision {
            return Ok(());
        }
        let body = controller_revision::renumbered(&document, new_revision);
        let body = body.map_err(decode_error)?;
        let replaced = self.client.replace(set, ControllerRevisions, name, body);
        stored(replaced.await?).map(drop)
    }
}

/// Decodes the response to a write.
fn stored(answer: String) -> Result<Arc<ControllerRevision>, Error> {
    Ok(Arc::new(decode(&Document::new(answer.into_bytes()))?))
}

fn decode(document: &Document) -> Result<ControllerRevision, ApiError> {
    ControllerRevision::decode_part(document, document.text()).map_err(decode_error)
}

fn decode_error(source: serde_json::Error) -> ApiError {
    ApiError::Decode {
        action: "read a ControllerRevision".to_owned(),
        source,
    }
}

#[async_trait]
impl History for RealHistory {
    fn cache(&self) -> &Indexer<ControllerRevision> {
        &self.cache
    }

    async fn create_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &NewRevision,
        collision_count: &mut i32,
    ) -> Result<Arc<ControllerRevision>, Error> {
        loop {
            let name = revision.name_for(*collision_count);
            let body = revision.body(&name);
            match self.client.create(set, ControllerRevisions, body).await {
                Err(error) if error.is_already_exists() => {}
                answer => return stored(answer?),
            }
            let key = ObjectKey::new(set.namespace(), &name);
            let document = self.client.read_document(ControllerRevisions, &key).await?;
            let existing = decode(&document)?;
            let version = &existing.resource_version;
            self.client.must_show(set, ControllerRevisions, version);
            if existing.records(&revision.data) {
                return Ok(Arc::new(existing));
            }
            *collision_count = collision_count.wrapping_add(1);
        }
    }

    async fn update_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
        new_revision: i64,
    ) -> Result<Arc<ControllerRevision>, Error> {
        let renumbered = Arc::new(ControllerRevision {
            revision: new_revision,
            ..revision.clone()
        });
        if revision.revision == new_revision {
            return Ok(renumbered);
        }
        let mut delays = DEFAULT_BACKOFF.delays(&*self.jitter);
        loop {
            match self.renumber(set, revision, new_revision).await {
                Err(error) if error.is_conflict() && wait(&mut delays).await => {}
                written => return written.map(|()| renumbered),
            }
        }
    }

    async fn delete_controller_revision(&self, revision: &ControllerRevision) -> Result<(), Error> {
        let (namespace, name) = (&revision.namespace, &revision.name);
        let unchanged = json!({"uid": revision.uid, "resourceVersion": revision.resource_version});
        let deleted = self
            .client
            .delete(ControllerRevisions, namespace, name, unchanged);
        Ok(deleted.await?)
    }

    async fn adopt_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<Arc<ControllerRevision>, Error> {
        if let Some(owner) = &revision.controller {
            return Err(Error::Owned(Box::new(owner.clone())));
        }
        let patch = adoption_patch(&set.controller_reference(), &revision.uid, &[]);
        let adopted = self
            .client
            .patch(set, ControllerRevisions, &revision.name, patch);
        stored(adopted.await?)
    }

    async fn release_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<(), Error> {
        let patch = release_patch(&revision.uid, &[set.uid()], &[]);
        let released = self
            .client
            .patch(set, ControllerRevisions, &revision.name, patch);
        match released.await {
            // The revision is gone, or the set no longer owns it.
            Err(error) if error.is_not_found() || error.is_invalid() => Ok(()),
            answer => Ok(answer.map(drop)?),
        }
    }
}
