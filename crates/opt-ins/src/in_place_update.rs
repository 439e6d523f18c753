//! The part of a sync that updates running pods instead of replacing them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_pod_control::{Error, PodSlot, SetPodControl};

use crate::due::time_left;
use crate::in_place::change::{Change, Template};
use crate::in_place::mark::is_marked;
use crate::in_place::step::{PodUpdate, Step};
use crate::in_place::{InPlace, Reason};
use crate::opted::{Blocked, Opted};
use crate::rollout::{Rollout, is_rolling, partition};
use crate::values::InPlaceScope;
use crate::wait::Wait;

/// Reason of the event about a pod that was updated in place.
const UPDATED: &str = "UpdatedInPlace";
/// Reason of the event about a pod that can't be updated in place.
const NOT_UPDATED: &str = "NotUpdatedInPlace";

/// The updates of a set's running pods in one sync.
#[derive(Clone, Copy)]
pub struct InPlaceUpdate<'a> {
    /// The set's choices.
    pub opted: Opted<'a>,
    /// The rollout.
    pub rollout: Rollout<'a>,
    /// The revision that the update gives.
    pub update: &'a ControllerRevision,
    /// The set's recorded revisions.
    pub recorded: &'a [Arc<ControllerRevision>],
    /// True if the feature gate is on.
    pub is_enabled: bool,
}

/// The pods in flight, after this sync's step with each of them.
#[derive(Debug, Default)]
pub struct Flight {
    /// Names of those that go on.
    going: BTreeSet<Box<str>>,
    /// Those that are replaced instead.
    given_up: Vec<(Arc<Pod>, Reason)>,
    /// The reason to wait for the first pod.
    wait: Option<Wait>,
    /// Delay until the time of a pod is over.
    pub sync_after: Option<Duration>,
    /// The first failure. The pods concerned are still in flight.
    failed: Option<Error>,
}

/// The pods to delete for an update, after this sync's step with the others.
#[derive(Debug, Default)]
pub struct Begun {
    /// The pods to delete.
    pub delete: Vec<Arc<Pod>>,
    /// The reason to wait for pods in flight.
    pub wait: Option<Wait>,
    /// Name of the first pod that is down, if others wait because of that.
    pub over_budget: Option<Box<str>>,
    reasons: Vec<(Box<str>, Reason)>,
}

/// The result of a step with one pod: the end of its time, if it has begun; or the reason for which the
/// pod is replaced.
type Stepped = Result<Option<Timestamp>, Reason>;

impl<'a> InPlaceUpdate<'a> {
    /// Takes the next step with each pod in flight. Those that the rollout reaches get the update's
    /// revision, any other returns to its own: the template was taken back, the partition raised, or
    /// the rollout paused.
    pub async fn advance(self) -> Flight {
        if !self.is_enabled {
            return Flight::default();
        }
        Box::pin(self.advance_all()).await
    }

    async fn advance_all(self) -> Flight {
        let mut flight = Flight::default();
        for slot in self.rollout.desired.iter().rev() {
            let pod = slot.existing().filter(|pod| is_in_flight(pod));
            let Some(pod) = pod.filter(|pod| !self.is_recreated(pod)) else {
                continue;
            };
            let is_reached = self.reaches(slot);
            match self.step(pod, is_reached).await {
                Ok(Err(reason)) if is_reached => flight.given_up.push((Arc::clone(pod), reason)),
                Ok(Err(_)) => flight.add(pod, None, self.opted.now),
                Ok(Ok(until)) => flight.add(pod, until, self.opted.now),
                Err(error) => {
                    flight.add(pod, None, self.opted.now);
                    flight.failed.get_or_insert(error);
                }
            }
        }
        flight
    }

    /// Updates pods in place that an update would delete, and returns the others. While pods are in
    /// flight, they and the others that are down leave less of the budget.
    ///
    /// # Errors
    ///
    /// A pod can't be read or written.
    pub async fn begin(self, flight: Flight, delete: Vec<Arc<Pod>>) -> Result<Begun, Error> {
        let in_place = self.opted.opt_ins.in_place();
        let mut begun = Begun::default();
        if in_place.is_none() && flight.is_empty() {
            begun.delete = delete;
            return Ok(begun);
        }
        begun.wait.clone_from(&flight.wait);
        let mut budget = Budget::new(self.rollout, &flight);
        for (pod, reason) in &flight.given_up {
            if budget.allows_end() {
                begun.replace(pod, Some(reason.clone()));
            }
        }
        let seconds = self.rollout.set.spec.min_ready_seconds;
        for pod in delete.iter().filter(|pod| !flight.contains(pod)) {
            if !budget.allows_start(pod.is_unavailable(seconds, self.rollout.now)) {
                let mut slots = self.rollout.desired.iter();
                let first = slots.find(|slot| self.rollout.is_down(slot));
                begun.over_budget = first.map(|slot| slot.name().into());
                continue;
            }
            if in_place.is_none() {
                begun.replace(pod, None);
                continue;
            }
            match Box::pin(self.step(pod, true)).await? {
                Ok(_) => {
                    let wait = || Wait::InPlaceUpdate((&pod.name).into());
                    begun.wait.get_or_insert_with(wait);
                }
                Err(reason) => begun.replace(pod, Some(reason)),
            }
        }
        Ok(begun)
    }

    /// Takes the next step with a pod.
    async fn step(self, pod: &Arc<Pod>, is_reached: bool) -> Result<Stepped, Error> {
        let change = match self.change(pod, is_reached) {
            Ok(change) => change,
            Err(reason) => return Ok(Err(reason)),
        };
        let in_place = self.opted.opt_ins.in_place();
        let back = InPlace {
            scope: InPlaceScope::Resources,
            timeout: Duration::MAX,
        };
        let is_outdated = pod.revision() != self.rollout.update_revision;
        let update = PodUpdate {
            change: &change,
            revision: if is_reached {
                self.rollout.update_revision
            } else {
                pod.revision()
            },
            in_place: in_place
                .filter(|_| is_reached && is_outdated)
                .unwrap_or(back),
            now: self.opted.now,
        };
        self.write(pod, update).await
    }

    /// Returns the change of a pod.
    fn change(self, pod: &Pod, is_reached: bool) -> Result<Change, Reason> {
        let is_outdated = pod.revision() != self.rollout.update_revision;
        let own = self.revision(pod.revision());
        let own = own.ok_or_else(|| Reason::NoTemplate(pod.revision().into()));
        if !(is_reached && is_outdated) {
            return Ok(Change::back_to(&Template::of(own?)?));
        }
        let in_place = self.opted.opt_ins.in_place().ok_or(Reason::OptedOut)?;
        if !is_in_flight(pod) && !pod.is_running_and_ready() {
            return Err(Reason::NotReady);
        }
        let (from, to) = (Template::of(own?)?, Template::of(self.update)?);
        Change::between(&from, &to, in_place.scope)
    }

    fn revision(self, name: &str) -> Option<&'a ControllerRevision> {
        let recorded = self.recorded.iter().map(|it| &**it);
        let mut all = recorded.chain([self.update]);
        all.find(|it| *it.name == *name)
    }

    /// Reads the pod live, and makes the write that is due.
    async fn write(self, pod: &Arc<Pod>, update: PodUpdate<'_>) -> Result<Stepped, Error> {
        let control = self.opted.control;
        let Some(mut live) = control.read_live(pod).await? else {
            return Ok(Ok(None));
        };
        let is_other = live.object.revision() != pod.revision()
            || (is_in_flight(pod) && !is_in_flight(&live.object))
            || live.object.is_terminating();
        if is_other {
            // The cache is about to show it.
            return Ok(Ok(None));
        }
        let step = match update.next(&live) {
            Ok(step) => step,
            Err(reason) => return Ok(Err(reason)),
        };
        let (is_last, written) = match step {
            Step::Wait(until) => return Ok(Ok(Some(until))),
            Step::Mark => {
                update.mark(&mut live.json);
                (false, control.write_live(live).await)
            }
            Step::Resize(spec) => (false, control.resize_live(&live, spec).await),
            Step::Finish => {
                update.finish(&mut live.json);
                (true, control.write_live(live).await)
            }
        };
        match written {
            Err(Error::Api(error))
                if error.is_forbidden() || error.is_invalid() || error.is_not_found() =>
            {
                return Ok(Err(Reason::Refused(error.to_string())));
            }
            written => written?,
        }
        if is_last && pod.revision() != update.revision {
            let (name, revision) = (&pod.name, update.revision);
            let message = format!("Pod {name} was updated in place to revision {revision}");
            control.events().note(UPDATED, &message);
        }
        Ok(Ok(None))
    }

    /// Returns true if the rollout goes as far as this pod.
    fn reaches(self, slot: &PodSlot) -> bool {
        let set = self.rollout.set;
        is_rolling(set) && !slot.ordinal().is_below(set, partition(set))
    }

    /// Returns true if the strategy `Recreate` deletes the pod anyway.
    fn is_recreated(self, pod: &Pod) -> bool {
        self.rollout.set.spec.recreates() && pod.revision() != self.rollout.update_revision
    }
}

impl Flight {
    fn add(&mut self, pod: &Pod, until: Option<Timestamp>, now: Timestamp) {
        let name = Box::<str>::from(&pod.name);
        self.wait
            .get_or_insert_with(|| Wait::InPlaceUpdate(name.clone()));
        // Without a limit, only the pod's next event matters.
        let until = until.filter(|until| *until < Timestamp::MAX);
        let left = until.and_then(|until| time_left(until, now));
        self.sync_after = self.sync_after.into_iter().chain(left).min();
        self.going.insert(name);
    }

    /// Takes the first failure of a step.
    ///
    /// # Errors
    ///
    /// A pod can't be read or written.
    pub fn failure(&mut self) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Returns true if no pod is in flight.
    pub fn is_empty(&self) -> bool {
        self.going.is_empty() && self.given_up.is_empty()
    }

    fn contains(&self, pod: &Pod) -> bool {
        let mut given_up = self.given_up.iter();
        self.going.contains(&*pod.name) || given_up.any(|(it, _)| it.name == pod.name)
    }

    /// Returns the pod for which an ordered set waits, if its update in place was given up: nothing
    /// else would replace it.
    pub fn given_up_at(&self, blocked: Option<Blocked<'_>>) -> Begun {
        let mut begun = Begun::default();
        if let Some(Blocked::ByPod(name)) = blocked {
            let mut given_up = self.given_up.iter();
            if let Some((pod, reason)) = given_up.find(|(pod, _)| *pod.name == *name) {
                begun.replace(pod, Some(reason.clone()));
            }
        }
        begun
    }
}

impl Begun {
    fn replace(&mut self, pod: &Arc<Pod>, reason: Option<Reason>) {
        let name = Box::<str>::from(&pod.name);
        self.reasons.extend(reason.map(|reason| (name, reason)));
        self.delete.push(Arc::clone(pod));
    }

    /// Tells for which reasons these pods are replaced.
    pub fn tell(&self, control: &SetPodControl<'_>, replaced: &[Arc<Pod>]) {
        for (name, reason) in &self.reasons {
            if replaced.iter().any(|pod| *pod.name == **name) {
                let message = format!("Pod {name} is replaced, not updated in place: {reason}");
                control.events().note(NOT_UPDATED, &message);
            }
        }
    }
}

/// The pods that an update disturbs at a time.
struct Budget {
    in_flight: usize,
    /// Down for the update.
    down: usize,
    max: usize,
    /// True if no pod was in flight when the sync began.
    is_calm: bool,
}

impl Budget {
    fn new(rollout: Rollout<'_>, flight: &Flight) -> Self {
        let is_in_flight = |slot: &PodSlot| slot.existing().is_some_and(|pod| flight.contains(pod));
        let slots = rollout.desired.iter();
        let down = slots.filter(|slot| rollout.is_down(slot) && !is_in_flight(slot));
        Self {
            in_flight: flight.going.len() + flight.given_up.len(),
            down: down.count(),
            max: rollout.max_unavailable,
            is_calm: flight.is_empty(),
        }
    }

    /// Returns true if a pod in flight may go down, and counts it.
    fn allows_end(&mut self) -> bool {
        let is_allowed = self.down < self.max;
        self.in_flight -= usize::from(is_allowed);
        self.down += usize::from(is_allowed);
        is_allowed
    }

    /// Returns true if one more pod may be disturbed, and counts it. Without pods in flight, one that is
    /// unavailable anyway is replaced if the plan of the update says so: a broken pod must not block its
    /// own repair.
    ///
    /// The plan alone doesn't count enough: with a budget of one pod it looks from the largest ordinal
    /// down, and a pod that was given up in flight may be down below.
    fn allows_start(&mut self, is_unavailable: bool) -> bool {
        let is_spare = self.is_calm && is_unavailable;
        let is_allowed = is_spare || self.in_flight + self.down < self.max;
        self.down += usize::from(is_allowed);
        is_allowed
    }
}

/// Returns true if the pod was marked and still runs.
fn is_in_flight(pod: &Pod) -> bool {
    is_marked(pod) && !pod.is_terminating() && !pod.is_terminal()
}
