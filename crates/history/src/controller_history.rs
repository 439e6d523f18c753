//! A set's revisions in the API server and in the cache.
//!
//! Upstream: `controller_history.go`.

mod order;

use std::sync::Arc;

use async_trait::async_trait;
use kube_apimachinery::json::Document;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::selector::Selector;
use serde_json::json;
use statefulset_client::backoff::{DEFAULT_BACKOFF, Jitter};
use statefulset_client::cache::indexer::{CachedObject, IndexKey, Indexer};
use statefulset_client::error::Error as ApiError;
use statefulset_client::resource::CONTROLLER_REVISIONS;
use statefulset_client::rest::{PatchType, RestClient};
use statefulset_controller_util::consistency::{ConsistencyStore, TrackedResource};
use statefulset_controller_util::controller_revision::{self, ControllerRevision};
use statefulset_controller_util::index::controller_index_key;
use statefulset_controller_util::pod_control::{adoption_patch, release_patch};
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::error::Error;
use crate::new_revision::NewRevision;

pub use order::sort_controller_revisions;

#[cfg(test)]
mod tests;

/// A new revision, or an existing one with the same data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The revision as the server stores it.
    pub revision: Arc<ControllerRevision>,
    /// The collision count that gave its name.
    pub collision_count: i32,
}

/// The history of a set.
///
/// Upstream: `history.Interface`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait History: Send + Sync {
    /// Returns the revisions that the selector selects and that the set or no object controls, in
    /// no particular order. Reads the cache.
    fn list_controller_revisions(
        &self,
        set: &StatefulSet,
        selector: &Selector,
    ) -> Vec<Arc<ControllerRevision>>;

    /// Creates a revision, with a new name for as long as the name belongs to a revision with other
    /// data. Returns an existing revision of the same name and data unchanged.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    async fn create_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &NewRevision,
        collision_count: i32,
    ) -> Result<Created, Error>;

    /// Changes a revision's number. Retries a conflict on a fresh copy.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport; the last conflict after 4 attempts.
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
    async fn delete_controller_revision(&self, revision: &ControllerRevision) -> Result<(), Error>;

    /// Makes the set the controller of an orphaned revision and returns the adopted revision.
    ///
    /// # Errors
    ///
    /// The revision has a controller, or the API server or the transport failed. A missing revision
    /// is an error too.
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
    async fn release_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<(), Error>;
}

/// Lists from a cache the revisions that the selector selects and that the set or no object
/// controls.
///
/// Upstream: `realHistory.ListControllerRevisions`.
pub fn list_controller_revisions(
    cache: &Indexer<ControllerRevision>,
    set: &StatefulSet,
    selector: &Selector,
) -> Vec<Arc<ControllerRevision>> {
    let owned = controller_index_key(set.namespace(), Some(&set.controller_reference()));
    let mut revisions = cache.by_index(&owned);
    revisions.extend(cache.by_index(&IndexKey::orphans(set.namespace())));
    revisions.retain(|revision| selector.matches(&revision.labels));
    revisions
}

/// Reads revisions from a cache and writes them through the API.
///
/// Upstream: `realHistory`.
pub struct RealHistory {
    client: RestClient,
    cache: Arc<Indexer<ControllerRevision>>,
    consistency: Arc<dyn ConsistencyStore>,
    jitter: Arc<dyn Jitter>,
}

impl RealHistory {
    /// Creates a history that reports its writes to `consistency`.
    pub fn new(
        client: RestClient,
        cache: Arc<Indexer<ControllerRevision>>,
        consistency: Arc<dyn ConsistencyStore>,
        jitter: Arc<dyn Jitter>,
    ) -> Self {
        Self {
            client,
            cache,
            consistency,
            jitter,
        }
    }

    /// Reads a revision from the API server, with the bytes of the response.
    async fn read(&self, key: &ObjectKey) -> Result<Document, ApiError> {
        self.client
            .get_document(&CONTROLLER_REVISIONS, key.namespace(), key.name())
            .await
    }

    /// Decodes a response and records its version.
    fn written(&self, set: &StatefulSet, answer: String) -> Result<ControllerRevision, ApiError> {
        let revision = decode(&Document::new(answer.into_bytes()))?;
        self.note(set, &revision);
        Ok(revision)
    }

    /// Records the version that the next sync must see.
    fn note(&self, set: &StatefulSet, revision: &ControllerRevision) {
        self.consistency.wrote_at(
            &set.key(),
            set.uid(),
            TrackedResource::ControllerRevisions,
            &revision.resource_version,
        );
    }

    /// Tries once to renumber the live revision.
    async fn renumber(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
        new_revision: i64,
    ) -> Result<(), Error> {
        let key = revision.key();
        let document = self.read(&key).await?;
        let live = decode(&document)?;
        if live.uid != revision.uid || live.data != revision.data {
            let message = format!(
                "Operation cannot be fulfilled on controllerrevisions.apps {:?}: the revision was replaced",
                key.name()
            );
            return Err(ApiError::api(409, "Conflict", message).into());
        }
        if live.revision == new_revision {
            return Ok(());
        }
        let body =
            controller_revision::renumbered(&document, new_revision).map_err(decode_error)?;
        let answer = self
            .client
            .replace(&CONTROLLER_REVISIONS, key.namespace(), key.name(), body)
            .await?;
        self.written(set, answer)?;
        Ok(())
    }
}

/// Returns delete options with this uid and version as preconditions.
fn delete_options(uid: &str, version: &str) -> String {
    json!({
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": uid, "resourceVersion": version},
    })
    .to_string()
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
    fn list_controller_revisions(
        &self,
        set: &StatefulSet,
        selector: &Selector,
    ) -> Vec<Arc<ControllerRevision>> {
        list_controller_revisions(&self.cache, set, selector)
    }

    async fn create_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &NewRevision,
        mut collision_count: i32,
    ) -> Result<Created, Error> {
        loop {
            let key = ObjectKey::new(set.namespace(), &revision.name_for(collision_count));
            let body = revision.body(key.name());
            let answer = self
                .client
                .create(&CONTROLLER_REVISIONS, key.namespace(), body)
                .await;
            let stored = match answer {
                Ok(answer) => self.written(set, answer)?,
                Err(error) if error.is_already_exists() => {
                    let existing = decode(&self.read(&key).await?)?;
                    self.note(set, &existing);
                    if !existing.records(&revision.data) {
                        collision_count = collision_count.wrapping_add(1);
                        continue;
                    }
                    existing
                }
                Err(error) => return Err(error.into()),
            };
            return Ok(Created {
                revision: Arc::new(stored),
                collision_count,
            });
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
                Ok(()) => return Ok(renumbered),
                Err(error) if error.is_conflict() => match delays.next() {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => return Err(error),
                },
                Err(error) => return Err(error),
            }
        }
    }

    async fn delete_controller_revision(&self, revision: &ControllerRevision) -> Result<(), Error> {
        let (namespace, name) = (&revision.namespace, &revision.name);
        let options = delete_options(&revision.uid, &revision.resource_version);
        self.client
            .delete(&CONTROLLER_REVISIONS, namespace, name, options)
            .await?;
        Ok(())
    }

    async fn adopt_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<Arc<ControllerRevision>, Error> {
        if let Some(owner) = &revision.controller {
            return Err(Error::Owned {
                owner: format!("{} {}", owner.kind, owner.name),
            });
        }
        let patch = adoption_patch(&set.controller_reference(), &revision.uid, &[]);
        let (namespace, name) = (&revision.namespace, &revision.name);
        let answer = self
            .client
            .patch(
                &CONTROLLER_REVISIONS,
                namespace,
                name,
                PatchType::Strategic,
                patch,
            )
            .await?;
        Ok(Arc::new(self.written(set, answer)?))
    }

    async fn release_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<(), Error> {
        let patch = release_patch(&revision.uid, &[set.uid()], &[]);
        let (namespace, name) = (&revision.namespace, &revision.name);
        let answer = self
            .client
            .patch(
                &CONTROLLER_REVISIONS,
                namespace,
                name,
                PatchType::Strategic,
                patch,
            )
            .await;
        match answer {
            Err(error) if error.is_not_found() || error.is_invalid() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }
}
