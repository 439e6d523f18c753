//! The part of a sync that acts on its set's choices: pods whose removal a gate holds back, and pods
//! that block a rollout.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use statefulset_pod_control::stateful_set_utils::ordinal;
use statefulset_pod_control::{Error, PodSlot, SetPodControl};

use crate::claim_growth::{self, ClaimRefusals, Context, Growth};
use crate::due::time_left;
use crate::opt_ins::OptIns;
use crate::removal_gate::{RemovalGate, kept_by_update, requested_at, withdraw};
use crate::repair::{Decision, Repair};
use crate::rollout::Rollout;
use crate::values::RepairMethod;
use crate::wait::Wait;

/// Reason of the event about a pod that blocked a rollout.
const REPLACED: &str = "ReplacedBlockingPod";

/// Reason of the event about a pod that was restarted for a claim.
const RESTARTED: &str = "RestartedForClaim";

/// The pods that may be removed.
pub struct Removable<'a, T: Clone> {
    /// These pods, in their order.
    pub open: Cow<'a, [T]>,
    /// The reason to wait for the first other pod; or the first error: a pod can't be read or marked,
    /// or a claim can't be written.
    pub held: Result<Option<Wait>, Error>,
}

/// A set's choices in one sync. The futures of sets without a choice are small: only the others are boxed.
#[derive(Clone, Copy)]
pub struct Opted<'a> {
    /// The choices.
    pub opt_ins: &'a OptIns,
    /// The control of the set's pods.
    pub control: &'a SetPodControl<'a>,
    /// The refused requests of this process.
    pub refusals: &'a ClaimRefusals,
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
    /// Returns the pods that may be deleted for an update. With `in_order`, those before the first whose
    /// gate holds.
    pub async fn removable(self, pods: &[Arc<Pod>], in_order: bool) -> Removable<'_, Arc<Pod>> {
        match self.opt_ins.removal_gate() {
            None => Removable::all(pods),
            Some(gate) => Box::pin(self.open(gate, pods, in_order)).await,
        }
    }

    async fn open<'a>(
        self,
        gate: RemovalGate<'_>,
        pods: &'a [Arc<Pod>],
        in_order: bool,
    ) -> Removable<'a, Arc<Pod>> {
        let mut removable = Removable::none();
        for pod in pods {
            let closed = self.closed(gate, pod).await;
            if removable.add(closed) {
                removable.open.to_mut().push(Arc::clone(pod));
            } else if in_order {
                break;
            }
        }
        removable
    }

    /// Returns the condemned pods to process. With `one_by_one`, those up to the first whose removal
    /// isn't completed.
    pub async fn removable_condemned<'a>(
        self,
        set: &StatefulSet,
        condemned: &'a [PodSlot],
        one_by_one: bool,
    ) -> Removable<'a, PodSlot> {
        match self.opt_ins.removal_gate() {
            None => Removable::all(condemned),
            Some(gate) => {
                let due = if one_by_one { 1 } else { condemned.len() };
                let condemned = condemned.split_at(due.min(condemned.len()));
                Box::pin(self.open_condemned(gate, condemned, keeps_claims(set))).await
            }
        }
    }

    async fn open_condemned<'a>(
        self,
        gate: RemovalGate<'_>,
        (due, later): (&'a [PodSlot], &'a [PodSlot]),
        keeps_claims: bool,
    ) -> Removable<'a, PodSlot> {
        let (mut removable, mut kept) = (Removable::none(), Vec::new());
        for slot in due {
            let closed = match staying(slot) {
                Some(pod) => self.closed(gate, pod).await,
                None => Ok(None),
            };
            if removable.add(closed) {
                removable.open.to_mut().push(slot.clone());
            } else {
                kept.push(slot);
            }
        }
        // A sync before the gate may have made these pods owners of their claims. The claims of those that
        // go anyway stay if the set says so by now.
        let is_kept = |slot: &&PodSlot| keeps_claims || staying(slot).is_some();
        kept.extend(later.iter().filter(is_kept));
        let released = self.release(kept.into_iter()).await;
        removable.add(released.map(|()| None));
        removable
    }

    /// Returns the reason to wait if the gate of any outdated pod holds: the strategy `Recreate`
    /// deletes all of them at once. Then, or after a failure, releases the claims that the set keeps: the
    /// sync processes neither the desired nor the condemned pods.
    ///
    /// # Errors
    ///
    /// A pod can't be read or marked, or a claim can't be written; the first such error.
    pub async fn closed_for_any(
        self,
        rollout: Rollout<'_>,
        condemned: &[PodSlot],
    ) -> Result<Option<Wait>, Error> {
        let pods = rollout.desired.iter().chain(condemned);
        let outdated = pods
            .filter_map(PodSlot::existing)
            .filter(|pod| pod.revision() != rollout.update_revision && !pod.is_terminating());
        let outdated: Vec<Arc<Pod>> = outdated.cloned().collect();
        let held = self.removable(&outdated, false).await.held;
        if matches!(held, Ok(None)) {
            return held;
        }
        let keeps_claims = keeps_claims(rollout.set);
        let condemned = if keeps_claims { condemned } else { &[] };
        let existing = |slot: &&PodSlot| slot.existing().is_some();
        let kept = rollout.desired.iter().chain(condemned).filter(existing);
        let released = self.release(kept).await;
        let held = held?;
        released.map(|()| held)
    }

    /// Removes pods from the owners of their claims. Tries every pod, and returns the first error.
    async fn release(self, slots: impl Iterator<Item = &PodSlot>) -> Result<(), Error> {
        let mut first = Ok(());
        for slot in slots {
            let released = self.control.release_claims(slot).await;
            first = first.and(released);
        }
        first
    }

    /// Returns the reason to wait if the pod's gate holds.
    async fn closed(self, gate: RemovalGate<'_>, pod: &Pod) -> Result<Option<Wait>, Error> {
        let passage = gate.passage(self.control, pod, self.now).await?;
        Ok(gate.wait(pod, passage))
    }

    /// Returns the delay until the first gate of a pod whose removal is requested no longer holds.
    pub fn next_opening<'a>(self, pods: impl Iterator<Item = &'a Pod>) -> Option<Duration> {
        let gate = self.opt_ins.removal_gate()?;
        let openings = pods.filter_map(|pod| gate.opens_at(requested_at(pod)?));
        openings.filter_map(|at| time_left(at, self.now)).min()
    }

    /// Withdraws requests to remove pods that stay: neither the update replaces them, nor are they restarted
    /// for their volumes.
    ///
    /// # Errors
    ///
    /// A claim can't be looked up, or a pod can't be read or written; the first such error.
    pub async fn withdraw_requests(self, rollout: Rollout<'_>) -> Result<(), Error> {
        let mut withdrawn = Ok(());
        for (slot, pod) in kept_by_update(rollout) {
            let stays = claim_growth::awaits_restart(self.claims(rollout), slot).map(|it| !it);
            let done = match stays {
                Ok(true) => Box::pin(withdraw(self.control, pod)).await,
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            };
            withdrawn = withdrawn.and(done);
        }
        withdrawn
    }

    /// Replaces a pod that blocks a rollout, else restarts the next pods whose volumes wait for that, if
    /// the set asks for it and they are due. Returns the reason to wait that follows, if any.
    ///
    /// # Errors
    ///
    /// A pod or a claim can't be read or written.
    pub async fn replace_blocking_pod(
        self,
        rollout: Rollout<'_>,
        blocked: Option<Blocked<'_>>,
    ) -> Result<Option<Wait>, Error> {
        let repair = self.opt_ins.repair().filter(|_| !rollout.is_full());
        if let (Some(repair), Some(blocked)) = (repair, blocked)
            && let Some(wait) = Box::pin(self.replace_with(repair, rollout, blocked)).await?
        {
            return Ok(Some(wait));
        }
        if self.opt_ins.claim_sizes.is_empty() {
            return Ok(None);
        }
        Box::pin(self.restart_for_claims(rollout)).await
    }

    async fn replace_with(
        self,
        repair: Repair,
        rollout: Rollout<'_>,
        blocked: Blocked<'_>,
    ) -> Result<Option<Wait>, Error> {
        let mut due = decisions(repair, rollout, blocked).filter_map(|it| match it {
            Decision::Now(pod) => Some(pod),
            Decision::Later(_) | Decision::Never => None,
        });
        let Some(pod) = due.next() else {
            return Ok(None);
        };
        let Some(live) = self.still_due(repair, rollout, &pod).await? else {
            return Ok(None);
        };
        let pod = Arc::new(live.object.clone());
        // A second look could show a pod that is ready by then.
        if let Some(gate) = self.opt_ins.removal_gate() {
            let passage = gate.passage_of(self.control, live, self.now).await?;
            if let Some(closed) = gate.wait(&pod, passage) {
                return Ok(Some(closed));
            }
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

    /// Lets claims grow that are smaller than the set asks, within the budget of a rollout. Each sync does,
    /// whatever the pods wait for: their volumes may be full. `None` if the set asks for no sizes.
    ///
    /// # Errors
    ///
    /// A claim can't be looked up, read or written, for a cause that may pass.
    pub async fn grow_claims(self, rollout: Rollout<'_>) -> Result<Option<Growth>, Error> {
        if self.opt_ins.claim_sizes.is_empty() {
            return Ok(None);
        }
        Box::pin(claim_growth::grow(self.claims(rollout)))
            .await
            .map(Some)
    }

    /// Restarts the next pods whose volumes wait for that, within the budget and behind the gate.
    async fn restart_for_claims(self, rollout: Rollout<'_>) -> Result<Option<Wait>, Error> {
        let context = self.claims(rollout);
        let due = claim_growth::due(context).await?;
        let pods: Vec<Arc<Pod>> = due.iter().map(|it| Arc::clone(&it.pod)).collect();
        let removable = self.removable(&pods, true).await;
        let open = removable.open.len();
        let mut wait = removable.held?;
        for restart in due.iter().take(open) {
            self.control.delete_pod_keeping_claims(&restart.pod).await?;
            restart.note(context);
            let (pod, claim) = (&restart.pod.name, &restart.claim.name);
            let message = format!("Pod {pod} was restarted so that claim {claim} grows");
            self.control.events().note(RESTARTED, &message);
            wait = Some(Wait::RestartedForClaim(pod.into()));
        }
        Ok(wait)
    }

    fn claims<'a>(&'a self, rollout: Rollout<'a>) -> Context<'a> {
        Context {
            opt_ins: self.opt_ins,
            control: self.control,
            refusals: self.refusals,
            rollout,
            now: self.now,
        }
    }

    /// Reads a pod live that is due for its replacement. Returns it if it still is: the cache may be old,
    /// and a pod that is ready by now must not go down.
    async fn still_due(
        self,
        repair: Repair,
        rollout: Rollout<'_>,
        pod: &Pod,
    ) -> Result<Option<Live<Pod>>, Error> {
        let live = self.control.read_live(pod).await?;
        Ok(live.filter(|live| {
            let slot = ordinal(&live.object.name)
                .map(|ordinal| PodSlot::Existing(ordinal, Arc::new(live.object.clone())));
            let decision = slot.map(|slot| repair.decide(rollout, &slot));
            matches!(decision, Some(Decision::Now(_)))
        }))
    }

    /// Returns the delay until a pod that blocks a rollout is due for its replacement.
    pub fn replaces_after(
        self,
        rollout: Rollout<'_>,
        blocked: Option<Blocked<'_>>,
    ) -> Option<Duration> {
        let decisions = decisions(self.opt_ins.repair()?, rollout, blocked?);
        let delays = decisions.filter_map(|it| match it {
            Decision::Later(delay) => Some(delay),
            Decision::Now(_) | Decision::Never => None,
        });
        delays.min()
    }
}

impl<'a, T: Clone> Removable<'a, T> {
    fn all(pods: &'a [T]) -> Self {
        Self {
            open: Cow::Borrowed(pods),
            held: Ok(None),
        }
    }

    fn none() -> Self {
        Self::all(&[])
    }

    /// Keeps the first reason not to remove a pod, and prefers errors. Returns true if there is none.
    fn add(&mut self, closed: Result<Option<Wait>, Error>) -> bool {
        let is_open = matches!(closed, Ok(None));
        match (&self.held, &closed) {
            (Err(_), _) | (Ok(Some(_)), Ok(_)) => {}
            (Ok(None), _) | (Ok(Some(_)), Err(_)) => self.held = closed,
        }
        is_open
    }
}

/// Returns the pod in a slot unless it is terminating.
fn staying(slot: &PodSlot) -> Option<&Arc<Pod>> {
    slot.existing().filter(|pod| !pod.is_terminating())
}

/// Returns true if the claims of pods that are scaled down stay.
fn keeps_claims(set: &StatefulSet) -> bool {
    set.spec.claim_retention_policy.when_scaled != ClaimRetentionPolicyType::Delete
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
