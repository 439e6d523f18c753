//! Behaviour changes and external status changes of a running pod.

use kube_test_control_plane_store::clock::later;
use serde_json::Value;

use super::behaviour::{Outcome, PodBehaviour};
use super::container::Role;
use super::ending::Ending;
use super::run::{Now, PodRun, Stage, Timer};
use crate::delay::Delay;

impl PodRun {
    /// Processes a change of the pod. Returns true if the run has changed.
    pub(super) fn change(&mut self, pod: &Value, behaviour: PodBehaviour, now: Now<'_>) -> bool {
        let phase = pod.pointer("/status/phase").and_then(Value::as_str);
        if let Some(phase @ ("Failed" | "Succeeded")) = phase
            && matches!(self.stage, Stage::Creating | Stage::Running)
        {
            // Another client ended the pod.
            let (failed, cause) = (phase == "Failed", self.behaviour.cause);
            self.end_as(Ending { failed, cause }, now);
            self.pending_events.clear();
            self.reported = self.report(pod, now.time);
            return false;
        }
        let changed = self.update(pod, now);
        if self.behaviour == behaviour {
            return changed;
        }
        self.behave(behaviour, now);
        true
    }

    /// Changes the behaviour. Running timers are moved as if the new delays had applied from the
    /// start.
    fn behave(&mut self, behaviour: PodBehaviour, now: Now<'_>) {
        let old = std::mem::replace(&mut self.behaviour, behaviour);
        match self.stage {
            Stage::Creating => {
                let never = Outcome::NeverStarts;
                if self.behaviour.outcome == never {
                    self.timers.remove(&Timer::Start);
                } else if old.outcome == never {
                    self.set(Timer::Start, self.behaviour.start_delay, now);
                } else if old.start_delay != self.behaviour.start_delay {
                    self.plan_again(Timer::Start, self.behaviour.start_delay, "once", 0, now);
                }
            }
            Stage::Running => self.behave_while_running(&old, now),
            Stage::Stopping => {
                let stops = |b: &PodBehaviour| (b.stop, b.pre_stop_delay, b.stop_delay);
                if stops(&old) != stops(&self.behaviour) {
                    self.plan_stop(now);
                }
            }
            Stage::Stopped | Stage::Ended => {}
        }
    }

    fn behave_while_running(&mut self, old: &PodBehaviour, now: Now<'_>) {
        let outcome = self.behaviour.outcome;
        for i in 0..self.containers.len() {
            let container = &mut self.containers[i];
            if self.behaviour.crash != old.crash {
                container.crashes = 0;
            }
            if self.behaviour.image_pull_failure != old.image_pull_failure
                && self.timers.contains_key(&Timer::Pull(i))
            {
                self.pull_now(i, now);
            }
            if !self.containers[i].is_running() {
                continue;
            }
            if self.behaviour.crash != old.crash {
                self.plan_crash(i, now);
            }
            let run = self.containers[i].runs;
            if self.containers[i].role == Role::Init && self.behaviour.init_delay != old.init_delay
            {
                let delay = self.behaviour.init_delay;
                self.plan_again(Timer::Finish(i), delay, "init", run, now);
            }
            if self.containers[i].role != Role::Main {
                continue;
            }
            if outcome != old.outcome {
                self.change_outcome(i, now);
            } else if self.behaviour.ready_delay != old.ready_delay {
                let delay = self.behaviour.ready_delay;
                self.plan_again(Timer::Ready(i), delay, "ready", run, now);
                self.plan_again(Timer::End, delay, "ready", run, now);
            }
        }
        let script = |b: &PodBehaviour| (b.flap.clone(), b.readiness.clone());
        if script(&self.behaviour) != script(old) {
            self.change_script(now);
        }
    }

    /// Moves a running timer to the end of the new delay.
    fn plan_again(&mut self, timer: Timer, delay: Delay, what: &str, nth: u32, now: Now<'_>) {
        let time = self.draw(delay, what, nth, now);
        let since = self.since.get(&timer).copied();
        if let (Some(due), Some(since)) = (self.timers.get_mut(&timer), since) {
            *due = later(since, time);
        }
    }

    fn change_outcome(&mut self, i: usize, now: Now<'_>) {
        self.timers.remove(&Timer::Finish(i));
        match self.behaviour.outcome {
            Outcome::Ready => {
                self.timers.remove(&Timer::End);
                if !self.containers[i].ready {
                    self.plan_readiness(i, now);
                }
            }
            Outcome::Fails | Outcome::Succeeds => self.plan_readiness(i, now),
            Outcome::NeverReady => {
                self.timers.remove(&Timer::End);
                self.timers.remove(&Timer::Ready(i));
                self.timers.remove(&Timer::Readiness);
                self.containers[i].ready = false;
            }
            Outcome::NeverStarts => {}
        }
    }
}
