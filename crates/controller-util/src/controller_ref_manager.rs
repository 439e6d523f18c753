//! Claiming of pods by controller reference: adoption and release.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::selector::Selector;
use kube_apimachinery::time::format_go;
use statefulset_client::cache::indexer::CachedObject;
use statefulset_client::error::Error as ApiError;
use statefulset_client::resource::STATEFUL_SETS;
use statefulset_client::rest::RestClient;
use tokio::sync::OnceCell;

use crate::error::Aggregate;
use crate::pod::Pod;
use crate::pod_control::{PodControl, adoption_patch, release_patch};
use crate::stateful_set::StatefulSet;

#[cfg(test)]
mod tests;

/// Reads sets from the API server, bypassing all caches.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait SetReader: Send + Sync {
    /// Reads a live set.
    ///
    /// # Errors
    ///
    /// The API server's error, or a failed request.
    async fn read_stateful_set(&self, key: &ObjectKey) -> Result<StatefulSet, ApiError>;
}

#[async_trait]
impl SetReader for RestClient {
    async fn read_stateful_set(&self, key: &ObjectKey) -> Result<StatefulSet, ApiError> {
        let text = self
            .get(&STATEFUL_SETS, key.namespace(), key.name())
            .await?;
        StatefulSet::decode(&text).map_err(|source| ApiError::Decode {
            action: format!("read StatefulSet {key}"),
            source,
        })
    }
}

/// Reason why a set may not adopt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CanAdoptError {
    /// The live set can't be read.
    #[error("can't recheck DeletionTimestamp: {0}")]
    Read(#[source] ApiError),
    /// The live set has the same name but another uid.
    #[error(
        "can't recheck DeletionTimestamp: original StatefulSet {key} is gone: got uid {found}, wanted {desired}"
    )]
    Recreated {
        /// The set.
        key: ObjectKey,
        /// UID of the live set.
        found: Box<str>,
        /// UID of the adopting set.
        desired: Box<str>,
    },
    /// The live set is being deleted.
    #[error("{key} has just been deleted at {}", format_go(*at))]
    Deleted {
        /// The set.
        key: ObjectKey,
        /// Deletion time.
        at: Timestamp,
    },
}

/// Reads the live set and checks that it may adopt.
///
/// # Errors
///
/// The set can't be read, has another uid, or is being deleted.
///
/// Upstream: `canAdoptFunc`, `RecheckDeletionTimestamp`, which return the check as a function.
pub async fn can_adopt(reader: &dyn SetReader, set: &StatefulSet) -> Result<(), CanAdoptError> {
    let key = set.key();
    let live = reader
        .read_stateful_set(&key)
        .await
        .map_err(CanAdoptError::Read)?;
    if live.uid() != set.uid() {
        let (found, desired) = (live.uid().into(), set.uid().into());
        return Err(CanAdoptError::Recreated {
            key,
            found,
            desired,
        });
    }
    match live.metadata.deletion_timestamp {
        Some(at) => Err(CanAdoptError::Deleted { key, at }),
        None => Ok(()),
    }
}

/// Reason why pods can't be claimed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// Adopting or releasing a pod failed.
    #[error("{0}")]
    Patch(#[from] ApiError),
    /// The set may not adopt.
    #[error("can't adopt Pod {pod} ({uid}): {source}")]
    Adopt {
        /// The orphan.
        pod: ObjectKey,
        /// Its uid.
        uid: Box<str>,
        /// The reason, shared by all orphans of a sync.
        #[source]
        source: Arc<CanAdoptError>,
    },
    /// Several pods failed.
    #[error("{0}")]
    Several(#[from] Aggregate),
}

/// Relation of a pod's name to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// A name that the set gives.
    Member,
    /// Any other name.
    Stranger,
    /// A name like the set's, but not canonical: the pod must stay untouched.
    Malformed,
}

/// Claims pods for one set in one sync.
///
/// Upstream: `controller.PodControllerRefManager`.
pub struct PodControllerRefManager<'a> {
    set: &'a StatefulSet,
    selector: &'a Selector,
    membership: &'a (dyn Fn(&Pod) -> Membership + Send + Sync),
    pod_control: &'a dyn PodControl,
    reader: &'a dyn SetReader,
    finalizers: &'a [&'a str],
    /// Result of the live check, which runs at most once, before the first adoption.
    can_adopt: OnceCell<Result<(), Arc<CanAdoptError>>>,
}

impl<'a> PodControllerRefManager<'a> {
    /// Creates a manager for one sync.
    ///
    /// Upstream: `NewPodControllerRefManager`.
    pub fn new(
        set: &'a StatefulSet,
        selector: &'a Selector,
        membership: &'a (dyn Fn(&Pod) -> Membership + Send + Sync),
        pod_control: &'a dyn PodControl,
        reader: &'a dyn SetReader,
    ) -> Self {
        let can_adopt = OnceCell::new();
        Self {
            set,
            selector,
            membership,
            pod_control,
            reader,
            finalizers: &[],
            can_adopt,
        }
    }

    /// Adds these finalizers to every adopted pod, and removes them from every released one. The
    /// StatefulSet controller uses none.
    #[must_use]
    pub fn with_finalizers(mut self, finalizers: &'a [&'a str]) -> Self {
        self.finalizers = finalizers;
        self
    }

    /// Adopts matching orphans, releases owned pods that don't match, and returns the candidates
    /// that the set then controls. An adopted pod is returned as it was before the patch.
    ///
    /// # Errors
    ///
    /// All failures, after every candidate was tried.
    ///
    /// Upstream: `ClaimPods`.
    pub async fn claim_pods(&self, candidates: Vec<Arc<Pod>>) -> Result<Vec<Arc<Pod>>, ClaimError> {
        let mut claimed = Vec::new();
        let mut errors = Vec::new();
        for pod in candidates {
            match self.claim_object(&pod).await {
                Ok(true) => claimed.push(pod),
                Ok(false) => {}
                Err(error) => errors.push(error),
            }
        }
        Aggregate::join(errors).map(|()| claimed)
    }

    /// Adopts or releases the pod if needed; returns whether the set controls it.
    ///
    /// Upstream: `ClaimObject`.
    async fn claim_object(&self, pod: &Pod) -> Result<bool, ClaimError> {
        let membership = (self.membership)(pod);
        if membership == Membership::Malformed {
            return Ok(false);
        }
        let matches = membership == Membership::Member && self.selector.matches(&pod.labels);
        match &pod.controller {
            Some(controller) if *controller.uid != *self.set.uid() => Ok(false),
            Some(_) if matches => Ok(true),
            Some(_) if self.set.is_deleting() => Ok(false),
            Some(_) => self.release_pod(pod).await.map(|()| false),
            None if self.set.is_deleting() || !matches || pod.is_terminating() => Ok(false),
            None if !self.may_own_in(&pod.namespace) => Ok(false),
            None => self.adopt_pod(pod).await,
        }
    }

    /// A cluster-scoped owner may own objects in every namespace.
    fn may_own_in(&self, namespace: &str) -> bool {
        self.set.namespace().is_empty() || self.set.namespace() == namespace
    }

    /// Upstream: `AdoptPod`.
    async fn adopt_pod(&self, pod: &Pod) -> Result<bool, ClaimError> {
        let check = || async { can_adopt(self.reader, self.set).await.map_err(Arc::new) };
        if let Err(source) = self.can_adopt.get_or_init(check).await {
            let (pod, uid, source) = (pod.key(), pod.uid.clone(), Arc::clone(source));
            return Err(ClaimError::Adopt { pod, uid, source });
        }
        let owner = self.set.controller_reference();
        let patch = adoption_patch(&owner, &pod.uid, self.finalizers);
        match self.pod_control.patch_pod(&pod.key(), patch).await {
            Ok(()) => Ok(true),
            // The pod is gone: nothing to adopt.
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Upstream: `ReleasePod`.
    async fn release_pod(&self, pod: &Pod) -> Result<(), ClaimError> {
        let patch = release_patch(&pod.uid, &[self.set.uid()], self.finalizers);
        match self.pod_control.patch_pod(&pod.key(), patch).await {
            // Gone, or owned by another uid: released either way.
            Err(error) if error.is_not_found() || error.is_invalid() => Ok(()),
            other => Ok(other?),
        }
    }
}
