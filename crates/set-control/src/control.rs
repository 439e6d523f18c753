//! The shell around one pass: revisions before, status and history after.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};
use statefulset_history::{History, RevisionData, sort_controller_revisions};
use statefulset_pod_control::StatefulPodControl;

use crate::core::{Pass, PassContext, run_pass};
use crate::error::Error;
use crate::outcome::SyncOutcome;
use crate::revisions::{CurrentAndUpdate, SemanticMatches, get_stateful_set_revisions};
use crate::rolling_update::max_unavailable as max_unavailable_of;
use crate::status::{complete_rolling_update, is_inconsistent};
use crate::status_updater::StatusUpdater;
use crate::truncate::revisions_to_delete;

#[cfg(test)]
mod tests;

/// Brings sets to their wanted state, one step at a time.
///
/// Upstream: `StatefulSetControlInterface`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait StatefulSetControl: Send + Sync {
    /// Takes one step for a set. `pods` are those that the set controls, `now` is the moment that
    /// every decision about availability goes by.
    async fn update_stateful_set(
        &self,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> SyncOutcome;

    /// The revisions that belong to the set or to nobody and that its selector selects.
    ///
    /// # Errors
    ///
    /// The set's selector can't be compiled.
    fn list_revisions(&self, set: &StatefulSet) -> Result<Vec<Arc<ControllerRevision>>, Error>;

    /// Makes the set the controller of revisions that have none; stops at the first failure.
    ///
    /// # Errors
    ///
    /// A revision has a controller, or can't be written.
    async fn adopt_orphan_revisions(
        &self,
        set: &StatefulSet,
        revisions: &[Arc<ControllerRevision>],
    ) -> Result<(), Error>;
}

/// The one implementation of the decisions.
///
/// Upstream: `defaultStatefulSetControl`.
pub struct DefaultStatefulSetControl {
    pod_control: Arc<dyn StatefulPodControl>,
    status_updater: Arc<dyn StatusUpdater>,
    history: Arc<dyn History>,
    gates: FeatureGates,
    semantic_matches: SemanticMatches,
}

impl DefaultStatefulSetControl {
    /// Makes a set control.
    ///
    /// Upstream: `NewDefaultStatefulSetControl`.
    pub fn new(
        pod_control: Arc<dyn StatefulPodControl>,
        status_updater: Arc<dyn StatusUpdater>,
        history: Arc<dyn History>,
        gates: FeatureGates,
    ) -> Self {
        let semantic_matches = SemanticMatches::new();
        Self {
            pod_control,
            status_updater,
            history,
            gates,
            semantic_matches,
        }
    }

    /// Finds the revisions, makes the pass, and records its status.
    ///
    /// Upstream: `performUpdate`.
    async fn perform_update(
        &self,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        sorted: &[Arc<ControllerRevision>],
        now: Timestamp,
    ) -> (SyncOutcome, Option<CurrentAndUpdate>) {
        let failed = |error| SyncOutcome {
            error: Some(error),
            ..SyncOutcome::default()
        };
        let semantic = self.gates.stateful_set_semantic_revision_comparison;
        let semantic = semantic.then_some(&self.semantic_matches);
        let history = &*self.history;
        let template = &set.spec.template;
        let data = if self.gates.revisions_record_null_creation_time() {
            RevisionData::with_null_creation_time(template)
        } else {
            RevisionData::new(template)
        };
        let data = match data {
            Ok(data) => data,
            Err(error) => return (failed(error.into()), None),
        };
        let found = get_stateful_set_revisions(history, semantic, set, &data, sorted);
        let revisions = match found.await {
            Ok(revisions) => revisions,
            Err(error) => return (failed(error), None),
        };
        let pod_control = &*self.pod_control;
        let max_unavailable_gate = self.gates.max_unavailable_stateful_set;
        let context = PassContext {
            pod_control,
            max_unavailable_gate,
            now,
        };
        let Pass {
            mut status,
            waiting,
            error,
            unavailable_replicas,
        } = match run_pass(&context, set, &revisions, pods).await {
            Ok(pass) => pass,
            Err(error) => return (failed(error), Some(revisions)),
        };
        complete_rolling_update(set, &mut status);
        let max_unavailable = max_unavailable_gate
            .then(|| max_unavailable_of(set))
            .transpose();
        let (max_unavailable, recorded) = match max_unavailable {
            Ok(max_unavailable) => (max_unavailable, self.record_status(set, &status).await),
            Err(error) => (None, Err(error.into())),
        };
        let error = match (error, recorded) {
            (Some(error), Err(masked)) => {
                tracing::error!(stateful_set = %set.key(), error = %masked, "could not update status");
                Some(error)
            }
            (error, recorded) => error.or(recorded.err()),
        };
        (
            SyncOutcome {
                status: Some(status),
                waiting,
                error,
                max_unavailable,
                unavailable_replicas,
            },
            Some(revisions),
        )
    }

    /// Writes the status, if it says anything new.
    ///
    /// Upstream: `updateStatefulSetStatus`.
    async fn record_status(
        &self,
        set: &StatefulSet,
        status: &StatefulSetStatus,
    ) -> Result<(), Error> {
        if !is_inconsistent(set, status) {
            return Ok(());
        }
        self.status_updater
            .update_stateful_set_status(set, status)
            .await
            .map_err(Error::Status)
    }

    /// Deletes old revisions that nothing uses; stops at the first failure.
    async fn truncate_history(
        &self,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        sorted: &[Arc<ControllerRevision>],
        used: Option<&CurrentAndUpdate>,
    ) -> Result<(), Error> {
        let in_status: Vec<&str> = used
            .map(|used| [&*used.current.name, &*used.update.name])
            .into_iter()
            .flatten()
            .collect();
        let limit = set.spec.revision_history_limit;
        for revision in revisions_to_delete(sorted, pods, &in_status, limit) {
            self.history.delete_controller_revision(revision).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl StatefulSetControl for DefaultStatefulSetControl {
    async fn update_stateful_set(
        &self,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> SyncOutcome {
        let mut sorted = match self.list_revisions(set) {
            Ok(revisions) => revisions,
            Err(error) => {
                return SyncOutcome {
                    error: Some(error),
                    ..SyncOutcome::default()
                };
            }
        };
        sort_controller_revisions(&mut sorted);
        let (mut outcome, used) = self.perform_update(set, pods, &sorted, now).await;
        if let Err(error) = self
            .truncate_history(set, pods, &sorted, used.as_ref())
            .await
        {
            outcome.error = Error::join(outcome.error.into_iter().chain([error]).collect()).err();
        }
        outcome
    }

    fn list_revisions(&self, set: &StatefulSet) -> Result<Vec<Arc<ControllerRevision>>, Error> {
        let selector = set.spec.selector.compiled()?;
        Ok(self.history.list_controller_revisions(set, selector))
    }

    async fn adopt_orphan_revisions(
        &self,
        set: &StatefulSet,
        revisions: &[Arc<ControllerRevision>],
    ) -> Result<(), Error> {
        for revision in revisions {
            self.history
                .adopt_controller_revision(set, revision)
                .await?;
        }
        Ok(())
    }
}
