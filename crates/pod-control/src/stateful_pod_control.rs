//! The seam to the pods of a set.

use async_trait::async_trait;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::error::Error;
use crate::live_set_check::LiveSetCheck;
use crate::new_pod::NewPod;
use crate::slot::PodSlot;

/// Creates, repairs and deletes the pods of a set, with the claims behind them.
///
/// Upstream: `StatefulPodControl`, which is concrete there.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait StatefulPodControl: Send + Sync {
    /// Creates the pod's missing claims, then the pod, then gives the claims their owners.
    ///
    /// # Errors
    ///
    /// What kept a claim or the pod from being created, or a claim from getting its owner.
    async fn create_stateful_pod(
        &self,
        set: &StatefulSet,
        pod: &NewPod,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error>;

    /// Repairs the pod's identity and volumes and its claims' owners, where they are wrong. A
    /// conflict is retried on a fresh copy.
    ///
    /// # Errors
    ///
    /// What kept the pod or a claim from being written; the last conflict of 4 attempts.
    async fn update_stateful_pod(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error>;

    /// Deletes the pod, if it is still this one. A pod that is gone already counts as deleted; one
    /// without a uid was created in this sync and is looked up first.
    ///
    /// # Errors
    ///
    /// What the API server or the way to it answered.
    async fn delete_stateful_pod(&self, set: &StatefulSet, pod: &Pod) -> Result<(), Error>;

    /// Deletes a pod that the set no longer wants. Where its claims are deleted with it, the live
    /// set must still say so.
    ///
    /// # Errors
    ///
    /// The set changed or can't be read; or what the API server or the way to it answered.
    async fn delete_condemned_pod(
        &self,
        set: &StatefulSet,
        pod: &Pod,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error>;

    /// Removes a pod from the owners of its claims, so that they outlive it.
    ///
    /// # Errors
    ///
    /// The first claim that can't be looked up or written.
    async fn release_claims(&self, set: &StatefulSet, pod: &PodSlot) -> Result<(), Error>;

    /// Whether the pod's cached claims have the owners that the retention policy wants; missing
    /// ones play no part.
    ///
    /// # Errors
    ///
    /// A claim can't be looked up.
    fn claims_match_retention_policy(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
    ) -> Result<bool, Error>;

    /// Gives the pod's claims the owners that the retention policy wants.
    ///
    /// # Errors
    ///
    /// The first claim that can't be looked up or written.
    async fn update_pod_claim_for_retention_policy(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error>;

    /// The first of the pod's claims that still belongs to an earlier pod of this name, so that
    /// the garbage collector will remove it.
    ///
    /// # Errors
    ///
    /// A claim can't be looked up.
    fn stale_claim(&self, set: &StatefulSet, pod: &PodSlot) -> Result<Option<String>, Error>;

    /// Creates the claims that a pending pod lacks, and gives them their owners.
    ///
    /// # Errors
    ///
    /// What kept a claim from being created or written.
    async fn create_missing_persistent_volume_claims(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error>;
}
