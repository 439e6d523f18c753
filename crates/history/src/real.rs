//! The history in the API server.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kube_apimachinery::json::Document;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::selector::Selector;
use lru::LruCache;
use serde_json::json;
use statefulset_client::backoff::{DEFAULT_BACKOFF, Jitter};
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::error::Error as ApiError;
use statefulset_client::resource::CONTROLLER_REVISIONS;
use statefulset_client::rest::{PatchType, RestClient};
use statefulset_controller_util::consistency::{ConsistencyStore, TrackedResource};
use statefulset_controller_util::controller_revision::{self, ControllerRevision};
use statefulset_controller_util::pod_control::{adoption_patch, release_patch};
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::error::Error;
use crate::history::{Created, History, list_controller_revisions};
use crate::new_revision::NewRevision;

#[cfg(test)]
mod tests;

/// How many adopted revisions are remembered: more than one sync adopts.
const MAX_ADOPTED: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// Reads revisions from a cache and writes them through the API.
///
/// Upstream: `realHistory`.
pub struct RealHistory {
    client: RestClient,
    cache: Arc<Indexer<ControllerRevision>>,
    consistency: Arc<dyn ConsistencyStore>,
    jitter: Arc<dyn Jitter>,
    /// The versions that adoptions led to, by uid: the sync that adopts a revision goes on with the
    /// copy from before.
    adopted: Mutex<LruCache<Box<str>, Box<str>>>,
}

impl RealHistory {
    /// Makes a history that reports its writes to `consistency`.
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
            adopted: Mutex::new(LruCache::new(MAX_ADOPTED)),
        }
    }

    fn adopted(&self) -> MutexGuard<'_, LruCache<Box<str>, Box<str>>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version of a revision as this process knows it.
    fn version(&self, revision: &ControllerRevision) -> Box<str> {
        let cached = &revision.resource_version;
        let is_orphan = revision.controller.is_none();
        let adopted = is_orphan.then(|| self.adopted().get(&revision.uid).cloned());
        adopted.flatten().unwrap_or_else(|| cached.clone())
    }

    /// Reads a revision live, with the bytes that the server sent.
    async fn read(&self, key: &ObjectKey) -> Result<Document, ApiError> {
        self.client
            .get_document(&CONTROLLER_REVISIONS, key.namespace(), key.name())
            .await
    }

    /// Decodes an answer and remembers its version.
    fn written(&self, set: &StatefulSet, answer: String) -> Result<ControllerRevision, ApiError> {
        let revision = decode(&Document::new(answer.into_bytes()))?;
        self.note(set, &revision);
        Ok(revision)
    }

    /// Remembers the version of a revision that the next sync must see.
    fn note(&self, set: &StatefulSet, revision: &ControllerRevision) {
        self.consistency.wrote_at(
            &set.key(),
            set.uid(),
            TrackedResource::ControllerRevisions,
            &revision.resource_version,
        );
    }

    /// One attempt to renumber the live revision.
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
                "Operation cannot be fulfilled on controllerrevisions.apps {:?}: it is another revision than the one to renumber",
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

/// The options of a delete that means the revision with this uid in this version alone.
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
        let options = delete_options(&revision.uid, &self.version(revision));
        self.client
            .delete(&CONTROLLER_REVISIONS, namespace, name, options)
            .await?;
        Ok(())
    }

    async fn adopt_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<(), Error> {
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
        let adopted = self.written(set, answer)?;
        self.adopted().put(adopted.uid, adopted.resource_version);
        Ok(())
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
