//! Ends of pods: on their own, by their node, or by deletion.

use std::time::Duration;

use kube_test_control_plane_store::clock::later;
use tokio::time::Instant;

use super::behaviour::{Cause, Outcome, Stop};
use super::container::{Container, Role, State, Termination};
use super::run::{Now, PodRun, Stage, Timer};

/// A pod's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) failed: bool,
    pub(crate) cause: Cause,
}

impl Cause {
    /// Returns the reason and message of the pod's status, if any.
    pub(super) fn explanation(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Exited => None,
            Self::Evicted => Some((
                "Evicted",
                "The node was low on resource: memory. Threshold quantity: 100Mi, available: \
                 50Mi. ",
            )),
            Self::NodeShutdown => Some((
                "Terminated",
                "Pod was terminated in response to imminent node shutdown.",
            )),
            Self::Preempted => Some(("Preempting", "Preempted in order to admit critical pod")),
            Self::DeadlineExceeded => Some((
                "DeadlineExceeded",
                "Pod was active on the node longer than the specified deadline",
            )),
            Self::NodePorts => Some((
                "NodePorts",
                "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for \
                 the requested pod ports",
            )),
        }
    }

    /// Reports whether the node disrupted the pod.
    pub(super) fn is_disruption(self) -> bool {
        matches!(self, Self::Evicted | Self::NodeShutdown | Self::Preempted)
    }

    fn exit_code(self) -> i32 {
        match self {
            Self::Exited | Self::NodePorts => 1,
            Self::NodeShutdown => 143,
            Self::Evicted | Self::Preempted | Self::DeadlineExceeded => 137,
        }
    }
}

impl Ending {
    /// The end of a pod rejected because another pod uses one of its host ports.
    pub(super) fn port_conflict() -> Self {
        let (failed, cause) = (true, Cause::NodePorts);
        Self { failed, cause }
    }
}

impl PodRun {
    /// Ends the pod according to its behaviour.
    pub(super) fn end(&mut self, now: Now<'_>) {
        let failed = self.behaviour.outcome == Outcome::Fails;
        let cause = self.behaviour.cause;
        self.end_as(Ending { failed, cause }, now);
    }

    /// Ends the pod.
    pub(super) fn end_as(&mut self, ending: Ending, now: Now<'_>) {
        let (code, reason) = if ending.failed {
            (ending.cause.exit_code(), "Error")
        } else {
            (0, "Completed")
        };
        for i in 0..self.containers.len() {
            self.terminate(i, code, None, reason, now);
        }
        self.detach(code, reason, now);
        self.timers.clear();
        self.stage = Stage::Ended;
        self.ending = Some(ending);
        if let Some((reason, message)) = ending.cause.explanation() {
            self.tell(true, reason, message.to_owned(), None);
        }
    }

    /// Begins to stop the containers of a terminating pod, or shortens its grace period.
    pub(super) fn begin_to_stop(&mut self, grace: Duration, now: Now<'_>) {
        let kill = later(now.at, grace);
        if self.stage == Stage::Stopping {
            let hurries = |(since, old): (Instant, Instant)| (since, kill.min(old));
            let hurried = self.stopping.map(hurries);
            if hurried != self.stopping {
                self.stopping = hurried;
                self.plan_stop(now);
            }
            return;
        }
        if self.stage == Stage::Stopped {
            return;
        }
        self.timers.clear();
        self.stage = Stage::Stopping;
        self.stopping = Some((now.at, kill));
        for i in 0..self.containers.len() {
            if self.containers[i].is_running() {
                let message = format!("Stopping container {}", self.containers[i].name);
                self.tell(false, "Killing", message, Some(i));
            }
        }
        self.plan_stop(now);
    }

    /// Plans the exit of the containers of a stopping pod.
    pub(super) fn plan_stop(&mut self, now: Now<'_>) {
        self.timers.remove(&Timer::Stop);
        let (since, kill) = self.stopping.unwrap_or((now.at, now.at));
        if !self.containers.iter().any(Container::is_running) {
            self.timers.insert(Timer::Stop, now.at);
            return;
        }
        let hook = self.draw(self.behaviour.pre_stop_delay, "pre-stop", 0, now);
        let stop = self.draw(self.behaviour.stop_delay, "stop", 0, now);
        let stopped = later(since, hook.saturating_add(stop));
        match self.behaviour.stop {
            Stop::Obeys => {
                self.is_killed = stopped > kill;
                self.timers.insert(Timer::Stop, kill.min(stopped));
            }
            Stop::IgnoresSigterm => {
                self.is_killed = true;
                self.timers.insert(Timer::Stop, kill);
            }
            Stop::Hangs => {}
        }
    }

    /// Ends the ephemeral containers.
    fn detach(&mut self, exit_code: i32, reason: &str, now: Now<'_>) {
        for container in &mut self.ephemeral {
            if let State::Running { since } = &container.state {
                container.state = State::Terminated(Termination {
                    exit_code,
                    signal: None,
                    reason: reason.to_owned(),
                    started_at: since.clone(),
                    finished_at: now.time.to_owned(),
                    run: container.runs,
                });
                if let Some(log) = &container.log {
                    log.end(now.timestamp);
                }
            }
        }
    }

    /// Completes the stop of a terminating pod's containers.
    pub(super) fn stop(&mut self, now: Now<'_>) {
        let code = if self.is_killed {
            137
        } else {
            self.behaviour.stop_exit_code
        };
        let reason = if code == 0 { "Completed" } else { "Error" };
        for i in 0..self.containers.len() {
            self.terminate(i, code, None, reason, now);
            let container = &mut self.containers[i];
            if let (State::Waiting { .. }, Some(last)) = (&container.state, &container.last) {
                container.state = State::Terminated(last.clone());
                container.last = None;
            }
        }
        self.detach(code, reason, now);
        self.timers.clear();
        self.stage = Stage::Stopped;
    }

    /// Returns the phase of the pod.
    ///
    /// Upstream: `getPhase`.
    pub(super) fn phase(&self) -> &'static str {
        if let Some(ending) = self.ending {
            return if ending.failed { "Failed" } else { "Succeeded" };
        }
        let main = || self.containers.iter().filter(|c| c.role == Role::Main);
        let is_over = matches!(self.stage, Stage::Ended | Stage::Stopped);
        let init = || self.containers.iter().filter(|c| c.role != Role::Main);
        if is_over && self.containers.iter().any(|container| container.runs > 0) {
            let all_succeeded = main().all(Container::succeeded);
            return if all_succeeded { "Succeeded" } else { "Failed" };
        }
        let has_started = |state: &State| !matches!(state, State::Waiting { .. });
        let all_started = main().all(|c| has_started(&c.state) || c.last.is_some());
        if !init().all(|c| c.lets_next_start() || c.role == Role::Sidecar && c.runs > 0)
            || !all_started
        {
            return "Pending";
        }
        "Running"
    }
}
