//! Brings sets to their desired state, behind a trait.
//!
//! Upstream: `stateful_set_control.go`.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::error::Error;
use crate::outcome::SyncOutcome;

/// Brings sets to their desired state, step by step.
///
/// Upstream: `StatefulSetControlInterface`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait StatefulSetControl: Send + Sync {
    /// Takes one step for a set. `revisions` come from [`Self::list_revisions`], `pods` are those
    /// that the set controls; `now` decides availability.
    ///
    /// Upstream: `UpdateStatefulSet`.
    async fn update_stateful_set(
        &self,
        set: &StatefulSet,
        revisions: Vec<Arc<ControllerRevision>>,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> SyncOutcome;

    /// Returns the revisions that the set's selector selects and that the set or no object
    /// controls, in no particular order.
    ///
    /// # Errors
    ///
    /// The set's selector can't be compiled.
    ///
    /// Upstream: `ListRevisions`.
    fn list_revisions(&self, set: &StatefulSet) -> Result<Vec<Arc<ControllerRevision>>, Error>;

    /// Makes the set the controller of orphaned revisions, from the oldest to the newest, and
    /// replaces them with the adopted revisions. Stops at the first failure.
    ///
    /// # Errors
    ///
    /// A revision can't be written.
    ///
    /// Upstream: `AdoptOrphanRevisions`.
    async fn adopt_orphan_revisions(
        &self,
        set: &StatefulSet,
        revisions: &mut [Arc<ControllerRevision>],
    ) -> Result<(), Error>;
}
