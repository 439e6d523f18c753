//! The cause for which a set waits, as its conditions name it.

use std::sync::Arc;

use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};
use statefulset_pod_control::stateful_set_utils::ordinal;

use crate::cause::Cause;
use crate::opt_ins::OptIns;
use crate::rollout::{is_rolling, partition};
use crate::wait::Wait;

/// The cause for which a set waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The cause.
    pub cause: Cause,
    /// The cause in words that stay equal while nothing changes; empty if the counters say it all.
    pub detail: String,
}

/// The reason for which a sync ends before the set is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited<'a> {
    /// Nothing: the sync had nothing left to do.
    Nothing,
    /// The repetition of a failed sync.
    Retry,
    /// The pod of this name; the cause counts if its state shows no other.
    Pod(&'a str, Cause),
    /// Something else.
    Other(Cause),
}

impl<'a> From<&'a Wait> for Awaited<'a> {
    fn from(wait: &'a Wait) -> Self {
        Self::Other(match wait {
            Wait::BlockingPodReplaced(_) => Cause::Repair,
            Wait::RestartedForClaim(_) => Cause::InProgress,
            Wait::EvictionRefused { .. } => Cause::EvictionRefused,
            Wait::RemovalGate { .. } => Cause::RemovalGate,
            Wait::InPlaceUpdate(_) => Cause::InPlaceUpdate,
        })
    }
}

/// A set at the end of a sync.
#[derive(Clone, Copy)]
pub struct Synced<'a> {
    /// The set, with its rollout limit.
    pub set: &'a StatefulSet,
    /// Its choices.
    pub opt_ins: &'a OptIns,
    /// The reason for the rollout's limit, if it has one.
    pub limit: Option<Cause>,
    /// Its pods.
    pub pods: &'a [Arc<Pod>],
    /// Its computed status.
    pub status: &'a StatefulSetStatus,
}

impl Synced<'_> {
    /// Returns the cause for which the set waits. `detail` describes it; the description of an error
    /// may differ from one attempt to the next, so it isn't used.
    pub fn situation(self, awaited: Awaited<'_>, detail: String) -> Situation {
        let cause = match awaited {
            // The pause lasts until the spec changes, whatever the pods do.
            _ if self.limit == Some(Cause::ProgressDeadlineExceeded) => {
                Cause::ProgressDeadlineExceeded
            }
            Awaited::Nothing => self.without_waiting(),
            Awaited::Retry => Cause::RetryBackOff,
            Awaited::Pod(name, otherwise) => self.of_pod(name, otherwise),
            Awaited::Other(cause) => cause,
        };
        let detail = match awaited {
            Awaited::Retry => "the last sync failed, see the events".to_owned(),
            _ => detail,
        };
        Situation { cause, detail }
    }

    /// Returns the cause if the sync had nothing left to do.
    fn without_waiting(self) -> Cause {
        let (set, status) = (self.set, self.status);
        let unavailable = status.available_replicas < set.spec.replicas;
        let first = unavailable.then(|| self.first_unready()).flatten();
        if let Some(pod) = first {
            self.of_pod(pod, Cause::PodStarting)
        } else if unavailable {
            Cause::MinReadySeconds
        } else if status.replicas != set.spec.replicas {
            Cause::InProgress
        } else if status.updated_replicas < status.replicas {
            self.limit.unwrap_or(Cause::Partition)
        } else {
            Cause::Settled
        }
    }

    /// Returns the name of the unready pod with the lowest ordinal.
    fn first_unready(&self) -> Option<&str> {
        let unready = self.pods.iter().filter(|pod| !pod.is_running_and_ready());
        let lowest = unready.min_by_key(|pod| ordinal(&pod.name));
        lowest.map(|pod| &*pod.name)
    }

    /// Returns the cause in the state of a pod; `otherwise` if it isn't ready for no known trouble.
    fn of_pod(self, name: &str, otherwise: Cause) -> Cause {
        let Some(pod) = self.pods.iter().find(|pod| *pod.name == *name) else {
            return Cause::InProgress;
        };
        if pod.is_terminating() {
            return Cause::Terminating;
        }
        let Some(unready) = &pod.unready else {
            return Cause::MinReadySeconds;
        };
        let Some(trouble) = unready.trouble else {
            return otherwise;
        };
        if *pod.revision() == *self.status.update_revision {
            return trouble.into();
        }
        let ordinal = ordinal(&pod.name);
        if ordinal.is_some_and(|ordinal| ordinal.is_below(self.set, partition(self.set))) {
            return self.limit.unwrap_or(Cause::PartitionKeepsBrokenPod);
        }
        let keeps_revision = ordinal.is_none_or(|it| it.keeps_current_revision(self.set));
        let is_repaired = is_rolling(self.set) && !keeps_revision;
        match self.opt_ins.repair().filter(|_| is_repaired) {
            Some(_) => Cause::Repair,
            None => Cause::OldRevisionBlocks,
        }
    }
}
