//! The part of a sync that acts on its set's choices: pods whose removal a gate holds back, and pods
//! that block a rollout.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use statefulset_controller_util::pod::Pod;
use statefulset_pod_control::stateful_set_utils::ordinal;
use statefulset_pod_control::{Error, PodSlot, SetPodControl};

use crate::opt_ins::OptIns;
use crate::removal_gate::{Passage, RemovalGate, no_longer_due, withdraw};
use crate::repair::{Decision, Repair};
use crate::rollout::Rollout;
use crate::values::RepairMethod;
use crate::wait::Wait;

/// Time between two attempts of a refused eviction.
const EVICTION_RETRY: Duration = Duration::from_secs(30);
/// Reason of the event about a pod that blocked a rollout.
const REPLACED: &str = "ReplacedBlockingPod";

/// The pods that may be removed, in their order, and the reason to wait for the first other one.
type Removable<'a, T> = (Cow<'a, [T]>, Option<Wait>);

/// A set's choices in one sync.
#[derive(Clone, Copy)]
pub struct Opted<'a> {
    /// The choices.
    pub opt_ins: &'a OptIns,
    /// The control of the set's pods.
    pub control: &'a SetPodControl<'a>,
    /// Current time.
    pub now: Timestamp,
}

/// The obstacle of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked<'a> {
    /// An ordered set waits for the pod of this name, which isn't ready.
    ByPod(&'a str),
    /// As many pods are unavailable as may be.
    ByBudget,
}

impl Opted<'_> {
    /// Returns the pods that may be deleted for an update.
    ///
    /// # Errors
    ///
    /// A pod can't be read or marked.
    pub async fn removable(self, pods: &[Arc<Pod>]) -> Result<Removable<'_, Arc<Pod>>, Error> {
        let Some(gate) = self.opt_ins.removal_gate() else {
            return Ok((Cow::Borrowed(pods), None));
        };
        let (mut open, mut waiting) = (Vec::new(), None);
        for pod in pods {
            match self.closed(gate, pod).await? {
                None => open.push(Arc::clone(pod)),
                closed => waiting = waiting.or(closed),
            }
        }
        Ok((Cow::Owned(open), waiting))
    }

    /// Returns the condemned pods to process. With `one_by_one`, those up to the first whose removal
    /// isn't completed.
    ///
    /// # Errors
    ///
    /// A pod can't be read or marked, or a claim can't be written.
    pub async fn removable_condemned(
        self,
        condemned: &[PodSlot],
        one_by_one: bool,
    ) -> Result<Removable<'_, PodSlot>, Error> {
        let Some(gate) = self.opt_ins.removal_gate() else {
            return Ok((Cow::Borrowed(condemned), None));
        };
        let due = if one_by_one { 1 } else { condemned.len() };
        let (due, later) = condemned.split_at(due.min(condemned.len()));
        let (mut open, mut kept, mut waiting) = (Vec::new(), Vec::new(), None);
        for slot in due {
            let closed = match staying(slot) {
                Some(pod) => self.closed(gate, pod).await?,
                None => None,
            };
            match closed {
                None => open.push(slot.clone()),
                closed => {
                    kept.push(slot);
                    waiting = waiting.or(closed);
                }
            }
        }
        // A sync before the gate may have made these pods owners of their claims.
        kept.extend(later.iter().filter(|slot| staying(slot).is_some()));
        for slot in kept {
            self.control.release_claims(slot).await?;
        }
        Ok((Cow::Owned(open), waiting))
    }

    /// Returns the reason to wait if the gate of any outdated pod holds: the strategy `Recreate`
    /// deletes all of them at once.
    ///
    /// # Errors
    ///
    /// A pod can't be read or marked.
    pub async fn closed_for_any(
        self,
        slots: impl Iterator<Item = &PodSlot>,
        update_revision: &str,
    ) -> Result<Option<Wait>, Error> {
        let outdated = slots
            .filter_map(PodSlot::existing)
            .filter(|pod| pod.revision() != update_revision && !pod.is_terminating());
        let outdated: Vec<Arc<Pod>> = outdated.cloned().collect();
        Ok(self.removable(&outdated).await?.1)
    }

    /// Returns the reason to wait if the pod's gate holds.
    async fn closed(self, gate: RemovalGate<'_>, pod: &Pod) -> Result<Option<Wait>, Error> {
        let passage = gate.passage(self.control, pod, self.now).await?;
        Ok(match passage {
            Passage::Open => None,
            Passage::Closed { opens_at } => Some(Wait::RemovalGate {
                pod: (&pod.name).into(),
                gate: gate.key.to_string().into(),
                opens_at,
            }),
        })
    }

    /// Withdraws requests to remove pods that stay.
    ///
    /// # Errors
    ///
    /// A pod can't be read or written.
    pub async fn withdraw_requests(self, rollout: Rollout<'_>) -> Result<(), Error> {
        for pod in no_longer_due(rollout) {
            withdraw(self.control, pod).await?;
        }
        Ok(())
    }

    /// Replaces a pod that blocks a rollout, if the set asks for that and it is due. Returns the
    /// reason to wait that follows, if any.
    ///
    /// # Errors
    ///
    /// A pod or a claim can't be read or written.
    pub async fn replace_blocking_pod(
        self,
        rollout: Rollout<'_>,
        blocked: Blocked<'_>,
    ) -> Result<Option<Wait>, Error> {
        let repair = self.opt_ins.repair().filter(|_| !rollout.is_full());
        let Some(repair) = repair else {
            return Ok(None);
        };
        let mut due = decisions(repair, rollout, blocked).filter_map(|it| match it {
            Decision::Now(pod) => Some(pod),
            Decision::Later(_) | Decision::Never => None,
        });
        let Some(pod) = due.next() else {
            return Ok(None);
        };
        let Some(pod) = self.still_due(repair, rollout, &pod).await? else {
            return Ok(None);
        };
        if let Some(gate) = self.opt_ins.removal_gate()
            && let Some(closed) = self.closed(gate, &pod).await?
        {
            return Ok(Some(closed));
        }
        let refused = match repair.method {
            RepairMethod::Evict => self.control.evict_pod_keeping_claims(&pod).await?,
            RepairMethod::Delete => {
                self.control.delete_pod_keeping_claims(&pod).await?;
                None
            }
        };
        let name = Box::<str>::from(&pod.name);
        if let Some(reason) = refused {
            return Ok(Some(Wait::EvictionRefused {
                pod: name,
                reason: reason.into(),
            }));
        }
        let message = format!(
            "Pod {name} of revision {} blocked the rollout to revision {} and was replaced",
            pod.revision(),
            rollout.update_revision
        );
        self.control.events().note(REPLACED, &message);
        Ok(Some(Wait::BlockingPodReplaced(name)))
    }

    /// Reads a pod live that is due for its replacement. Returns it if it still is: the cache may be old,
    /// and a pod that is ready by now must not go down.
    async fn still_due(
        self,
        repair: Repair,
        rollout: Rollout<'_>,
        pod: &Pod,
    ) -> Result<Option<Arc<Pod>>, Error> {
        let live = self.control.read_live(pod).await?;
        let slot = live.and_then(|live| {
            let ordinal = ordinal(&live.object.name)?;
            Some(PodSlot::Existing(ordinal, Arc::new(live.object)))
        });
        Ok(match slot.map(|slot| repair.decide(rollout, &slot)) {
            Some(Decision::Now(pod)) => Some(pod),
            Some(Decision::Later(_) | Decision::Never) | None => None,
        })
    }

    /// Returns the delay until a pod that blocks a rollout is due for its replacement.
    pub fn replaces_after(self, rollout: Rollout<'_>, blocked: Blocked<'_>) -> Option<Duration> {
        let decisions = decisions(self.opt_ins.repair()?, rollout, blocked);
        let delays = decisions.filter_map(|it| match it {
            Decision::Later(delay) => Some(delay),
            Decision::Now(_) | Decision::Never => None,
        });
        delays.min()
    }

    /// Returns the delay until time alone changes the reason to wait.
    pub fn sync_after(self, wait: &Wait) -> Option<Duration> {
        match wait {
            Wait::EvictionRefused { .. } => Some(EVICTION_RETRY),
            Wait::RemovalGate { opens_at, .. } => {
                Duration::try_from((*opens_at)?.duration_since(self.now)).ok()
            }
            Wait::BlockingPodReplaced(_) => None,
        }
    }
}

/// Returns the pod in a slot unless it is terminating.
fn staying(slot: &PodSlot) -> Option<&Arc<Pod>> {
    slot.existing().filter(|pod| !pod.is_terminating())
}

/// Returns the decisions about the pods that block a rollout, from the largest ordinal down.
fn decisions<'a>(
    repair: Repair,
    rollout: Rollout<'a>,
    blocked: Blocked<'a>,
) -> impl Iterator<Item = Decision> + use<'a> {
    let slots = rollout.desired.iter().rev();
    let blocking = slots.filter(move |slot| match blocked {
        Blocked::ByPod(pod) => slot.name() == pod,
        Blocked::ByBudget => true,
    });
    blocking.map(move |slot| repair.decide(rollout, slot))
}
