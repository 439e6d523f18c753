//! Alternating readiness: scripted or flapping.

use std::time::Duration;

use kube_test_control_plane_store::clock::later;

use super::behaviour::ReadinessStep;
use super::container::Role;
use super::run::{Now, PodRun, Timer};
use crate::delay::Delay;

/// Shortest phase of unlimited flapping.
const FLAP_MIN: Duration = Duration::from_millis(100);

impl PodRun {
    /// Marks a container ready for the first time since its start.
    pub(super) fn become_ready(&mut self, i: usize, now: Now<'_>) {
        if !self.containers[i].is_running() {
            return;
        }
        let (is_ready, lasting) = self.readiness();
        self.containers[i].ready = is_ready;
        if !is_ready {
            self.report_unready(i);
        }
        if !self.timers.contains_key(&Timer::Readiness) {
            self.plan_step(lasting, now);
        }
    }

    /// Returns the pod's readiness at this step and its duration; `None` means forever.
    fn readiness(&self) -> (bool, Option<Delay>) {
        let script = &self.behaviour.readiness;
        let step = usize::try_from(self.step).unwrap_or(usize::MAX);
        if let Some(last) = script.last() {
            let is_last = step + 1 >= script.len();
            return match script.get(step).unwrap_or(last) {
                ReadinessStep::Ready(time) => (true, Some(*time).filter(|_| !is_last)),
                ReadinessStep::Unready(time) => (false, Some(*time).filter(|_| !is_last)),
            };
        }
        let Some(flap) = &self.behaviour.flap else {
            return (true, None);
        };
        let at_least = |delay: Delay| delay.at_least(FLAP_MIN);
        if self.step % 2 == 1 {
            return (false, Some(at_least(flap.unready_for)));
        }
        let again = flap.times.is_none_or(|times| self.step / 2 < times);
        (true, again.then(|| at_least(flap.ready_for)))
    }

    fn plan_step(&mut self, lasting: Option<Delay>, now: Now<'_>) {
        if let Some(delay) = lasting {
            let time = self.draw(delay, "readiness", self.step, now);
            self.timers.insert(Timer::Readiness, later(now.at, time));
        }
    }

    /// Advances to the next step of the script.
    pub(super) fn next_step(&mut self, now: Now<'_>) {
        self.step = self.step.saturating_add(1);
        let (is_ready, lasting) = self.readiness();
        self.mark(is_ready, false);
        self.plan_step(lasting, now);
    }

    /// Starts a new script, if the pod has been ready already.
    pub(super) fn change_script(&mut self, now: Now<'_>) {
        let is_under_way = self.timers.remove(&Timer::Readiness).is_some();
        let is_old = self.step > 0 || is_under_way;
        self.step = 0;
        let main = || self.containers.iter().filter(|c| c.role == Role::Main);
        if is_old || main().any(|container| container.ready) {
            let (is_ready, lasting) = self.readiness();
            self.mark(is_ready, false);
            self.plan_step(lasting, now);
        }
    }

    /// Marks the running containers ready or unready, until a later change.
    pub(super) fn set_ready(&mut self, ready: bool, now: Now<'_>) {
        self.mark(ready, true);
        self.timers.remove(&Timer::Readiness);
        if ready && self.behaviour.readiness.is_empty() {
            // Flapping continues from a ready phase.
            self.step += self.step % 2;
            let (_, lasting) = self.readiness();
            self.plan_step(lasting, now);
        }
    }

    /// Marks the running main containers ready or unready. Containers still in their ready delay
    /// change only if `all` is set.
    fn mark(&mut self, ready: bool, all: bool) {
        for i in 0..self.containers.len() {
            let container = &mut self.containers[i];
            if container.role == Role::Main && container.is_running() {
                let is_new = self.timers.contains_key(&Timer::Ready(i));
                if all || !is_new {
                    container.ready = ready;
                    self.timers.remove(&Timer::Ready(i));
                    if !ready {
                        self.report_unready(i);
                    }
                }
            }
        }
    }
}
