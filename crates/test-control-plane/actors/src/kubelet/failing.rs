//! Crashing containers and failing image pulls.

use std::time::Duration;

use kube_apimachinery::go_duration;
use kube_test_control_plane_store::clock::later;

use super::behaviour::Crash;
use super::container::{Container, Role, State, Termination, full_name};
use super::run::{Now, PodRun, Stage, Timer};

/// Time until the kubelet notices a container's exit or a failed image pull.
const NOTICE: Duration = Duration::from_secs(1);

/// A container that ran for this long starts its next back-off from the beginning.
const LONG_RUN: Duration = Duration::from_secs(600);

impl PodRun {
    /// Returns the next crash of a container, if any.
    fn crash_of(&self, i: usize) -> Option<&Crash> {
        let crash = self.behaviour.crash.as_ref()?;
        let container = &self.containers[i];
        let is_meant = match &crash.container {
            Some(name) => *name == container.name,
            None => self.containers.iter().position(|c| c.role == Role::Main) == Some(i),
        };
        let again = crash.times.is_none_or(|times| container.crashes < times);
        Some(crash).filter(|_| is_meant && again)
    }

    /// Plans the crash of a running container, or cancels it.
    pub(super) fn plan_crash(&mut self, i: usize, now: Now<'_>) {
        let Some(after) = self.crash_of(i).map(|crash| crash.after) else {
            self.timers.remove(&Timer::Crash(i));
            return;
        };
        let run = self.containers[i].runs;
        let due = later(now.at, self.draw(after, "crash", run, now));
        self.timers.insert(Timer::Crash(i), due);
        self.timers.remove(&Timer::Finish(i));
    }

    pub(super) fn crash(&mut self, i: usize, now: Now<'_>) {
        let Some(crash) = self.crash_of(i).cloned() else {
            return;
        };
        self.containers[i].crashes += 1;
        self.crash_as(i, &crash, now);
    }

    /// Crashes a container immediately. The crash doesn't count as one of the behaviour's.
    pub(super) fn crash_now(&mut self, crash: &Crash, now: Now<'_>) {
        let is_meant = |container: &Container| match &crash.container {
            Some(name) => *name == container.name,
            None => container.role == Role::Main,
        };
        if let Some(i) = self.containers.iter().position(is_meant)
            && self.containers[i].is_running()
        {
            self.crash_as(i, crash, now);
        }
    }

    /// Ends a container with the crash's exit code and reason.
    fn crash_as(&mut self, i: usize, crash: &Crash, now: Now<'_>) {
        let code = crash.exit_code.unwrap_or_else(|| match crash.signal {
            Some(signal) => signal.saturating_add(128),
            None if crash.reason == "OOMKilled" => 137,
            None => 1,
        });
        self.terminate(i, code, crash.signal, &crash.reason, now);
        self.restart_later(i, now);
    }

    /// Ends an init container after its time, or a main container whose own command has ended.
    pub(super) fn finish(&mut self, i: usize, now: Now<'_>) {
        let container = &self.containers[i];
        if let (Some(_), Some(log)) = (container.end, &container.log) {
            log.complete(now.timestamp);
        }
        let code = container.end.map_or(0, |end| end.code);
        self.exit(i, code, now);
    }

    /// Ends a run of a main container, if it still goes on.
    pub(super) fn exit_run(&mut self, name: &str, run: u32, code: i32, now: Now<'_>) {
        let is_meant = |container: &Container| {
            container.role == Role::Main
                && container.name == name
                && container.runs == run
                && container.is_running()
        };
        if let Some(i) = self.containers.iter().position(is_meant) {
            self.exit(i, code, now);
        }
    }

    /// Ends a container on its own.
    fn exit(&mut self, i: usize, code: i32, now: Now<'_>) {
        let reason = if code == 0 { "Completed" } else { "Error" };
        self.terminate(i, code, None, reason, now);
        self.restart_later(i, now);
    }

    /// Marks a running container as terminated.
    pub(super) fn terminate(
        &mut self,
        i: usize,
        exit_code: i32,
        signal: Option<i32>,
        reason: &str,
        now: Now<'_>,
    ) {
        for timer in [Timer::Ready(i), Timer::Crash(i), Timer::Finish(i)] {
            self.timers.remove(&timer);
        }
        let container = &mut self.containers[i];
        let State::Running { since } = &container.state else {
            return;
        };
        if ran_long(since, now.time) {
            container.exits = 0;
        }
        container.state = State::Terminated(Termination {
            exit_code,
            signal,
            reason: reason.to_owned(),
            started_at: since.clone(),
            finished_at: now.time.to_owned(),
            run: container.runs,
        });
        if let Some(log) = &container.log {
            log.end(now.timestamp);
        }
        container.ready = container.role == Role::Init && exit_code == 0;
        container.exits += 1;
    }

    /// Plans the restart after a container's exit.
    pub(super) fn restart_later(&mut self, i: usize, now: Now<'_>) {
        let container = &self.containers[i];
        let succeeded = container.succeeded();
        let restarts = match (container.role, self.restart_policy.as_str()) {
            (Role::Sidecar, _) | (Role::Main, "Always") => true,
            (_, "Never") => false,
            _ => !succeeded,
        };
        if restarts {
            self.timers.insert(Timer::Restart(i), now.at + NOTICE);
        } else if container.role == Role::Init && succeeded {
            self.start_next(now);
        } else if self.is_finished() {
            self.timers.clear();
            self.stage = Stage::Ended;
        }
    }

    /// Reports whether no container will run again.
    fn is_finished(&self) -> bool {
        let failed_init = self.restart_policy == "Never"
            && self.containers.iter().any(|container| {
                let is_init = container.role == Role::Init;
                is_init && container.ended().is_some_and(|end| end.exit_code != 0)
            });
        let main = || self.containers.iter().filter(|c| c.role == Role::Main);
        let all_ended = main().all(|container| {
            matches!(&container.state, State::Terminated(end)
                if self.restart_policy == "Never" || end.exit_code == 0)
        });
        failed_init || all_ended
    }

    /// Restarts a container after its exit was noticed, or after its back-off.
    pub(super) fn restart(&mut self, i: usize, now: Now<'_>) {
        let container = &mut self.containers[i];
        if let State::Terminated(end) = &container.state {
            let end = end.clone();
            container.last = Some(end);
            // The first restart is immediate.
            if container.exits > 1 {
                let wait = now.back_off.after(container.exits - 1);
                self.back_off(i, wait, now);
                return;
            }
        }
        self.containers[i].restarts += 1;
        self.start(i, now);
    }

    fn back_off(&mut self, i: usize, wait: Duration, now: Now<'_>) {
        let (name, key, uid) = (self.containers[i].name.clone(), &self.key, &self.uid);
        let pod = format!("{}_{}", key.name, key.namespace);
        let message = format!(
            "back-off {} restarting failed container={name} pod={pod}({uid})",
            go_duration::format(wait)
        );
        let event = format!("Back-off restarting failed container {name} in pod {pod}({uid})");
        self.containers[i].state = State::Waiting {
            reason: "CrashLoopBackOff",
            message: Some(message),
        };
        self.tell(true, "BackOff", event, Some(i));
        // Counted from the container's exit.
        let due = later(now.at, wait.saturating_sub(NOTICE));
        self.timers.insert(Timer::Restart(i), due);
    }

    /// Reports whether the pull of a container's image fails; the container then waits.
    pub(super) fn pull_fails(&mut self, i: usize, now: Now<'_>) -> bool {
        let Some(failure) = &self.behaviour.image_pull_failure else {
            return false;
        };
        let container = &self.containers[i];
        let is_meant = match &failure.image {
            Some(pattern) => pattern.matches(&container.image),
            None => !container.has_other_image,
        };
        let again = failure.times.is_none_or(|n| container.failed_pulls < n);
        if !is_meant || !again {
            return false;
        }
        let (image, full) = (container.image.clone(), full_name(&container.image));
        let message = failure.message.clone().unwrap_or_else(|| {
            format!(
                "rpc error: code = NotFound desc = failed to pull and unpack image {full:?}: \
                 failed to resolve reference {full:?}: {full}: not found"
            )
        });
        self.tell(
            false,
            "Pulling",
            format!("Pulling image {image:?}"),
            Some(i),
        );
        let failed = format!("Failed to pull image {image:?}: {message}");
        self.tell(true, "Failed", failed, Some(i));
        self.tell(true, "Failed", "Error: ErrImagePull".to_owned(), Some(i));
        let container = &mut self.containers[i];
        container.failed_pulls += 1;
        container.state = State::Waiting {
            reason: "ErrImagePull",
            message: Some(message),
        };
        self.timers.insert(Timer::Pull(i), now.at + NOTICE);
        true
    }

    /// Reports a back-off of the image pull, or retries the pull.
    pub(super) fn pull_again(&mut self, i: usize, now: Now<'_>) {
        let container = &mut self.containers[i];
        let State::Waiting { reason, message } = &container.state else {
            return;
        };
        if *reason != "ErrImagePull" {
            self.start(i, now);
            return;
        }
        let image = &container.image;
        let back_off = format!("Back-off pulling image {image:?}");
        let error = message.as_deref().unwrap_or_default();
        let message = format!("{back_off}: ErrImagePull: {error}");
        let wait = now.back_off.after(container.failed_pulls);
        container.state = State::Waiting {
            reason: "ImagePullBackOff",
            message: Some(message),
        };
        self.tell(false, "BackOff", back_off, Some(i));
        let error = "Error: ImagePullBackOff".to_owned();
        self.tell(true, "Failed", error, Some(i));
        let due = later(now.at, wait.saturating_sub(NOTICE));
        self.timers.insert(Timer::Pull(i), due);
    }
}

/// Reports whether a container's run from `since` to `until` was long.
fn ran_long(since: &str, until: &str) -> bool {
    let parse = |time: &str| time.parse::<jiff::Timestamp>().ok();
    let (Some(since), Some(until)) = (parse(since), parse(until)) else {
        return false;
    };
    until.duration_since(since).unsigned_abs() >= LONG_RUN
}
