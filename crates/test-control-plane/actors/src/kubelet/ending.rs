//! Ends of pods: on their own, by their node, or by deletion.

use std::time::Duration;

use kube_test_control_plane_store::clock::later;
use tokio::time::Instant;

use super::behaviour::{Cause, Outcome, Stop};
use super::container::{Container, ContainerState, Role, Termination};
use super::run::{Ending, Now, PodRun, Stage, Timer};

/// A container that ran for this long starts its next back-off from the beginning.
const LONG_RUN: Duration = Duration::from_secs(600);

/// Ends the pod according to its behaviour.
pub(super) fn end(run: &mut PodRun, now: Now<'_>) {
    let failed = run.behaviour.outcome == Outcome::Fails;
    let cause = run.behaviour.cause;
    end_as(run, Ending { failed, cause }, now);
}

/// Ends the pod.
pub(super) fn end_as(run: &mut PodRun, ending: Ending, now: Now<'_>) {
    let (code, reason) = if ending.failed {
        (ending.cause.exit_code(), "Error")
    } else {
        (0, "Completed")
    };
    for i in 0..run.containers.len() {
        terminate(run, i, code, None, reason, now);
    }
    detach(run, code, reason, now);
    run.timers.clear();
    run.stage = Stage::Ended;
    run.ending = Some(ending);
    if let Some((reason, message)) = ending.cause.explanation() {
        run.tell(true, reason, message.to_owned(), None);
    }
}

/// Begins to stop the containers of a terminating pod, or shortens its grace period.
pub(super) fn begin_to_stop(run: &mut PodRun, grace: Duration, now: Now<'_>) {
    let kill = later(now.at, grace);
    if run.stage == Stage::Stopping {
        let hurries = |(since, old): (Instant, Instant)| (since, kill.min(old));
        let hurried = run.stopping.map(hurries);
        if hurried != run.stopping {
            run.stopping = hurried;
            plan_stop(run, now);
        }
        return;
    }
    if run.stage == Stage::Stopped {
        return;
    }
    run.timers.clear();
    run.stage = Stage::Stopping;
    run.stopping = Some((now.at, kill));
    for i in 0..run.containers.len() {
        if run.containers[i].is_running() {
            let message = format!("Stopping container {}", run.containers[i].name);
            run.tell(false, "Killing", message, Some(i));
        }
    }
    plan_stop(run, now);
}

/// Plans the exit of the containers of a stopping pod.
pub(super) fn plan_stop(run: &mut PodRun, now: Now<'_>) {
    run.timers.remove(&Timer::Stop);
    let (since, kill) = run.stopping.unwrap_or((now.at, now.at));
    if !run.containers.iter().any(Container::is_running) {
        run.timers.insert(Timer::Stop, now.at);
        return;
    }
    let hook = run.draw(run.behaviour.pre_stop_delay, "pre-stop", 0, now);
    let stop = run.draw(run.behaviour.stop_delay, "stop", 0, now);
    let stopped = later(since, hook.saturating_add(stop));
    match run.behaviour.stop {
        Stop::Obeys => {
            run.is_killed = stopped > kill;
            run.timers.insert(Timer::Stop, kill.min(stopped));
        }
        Stop::IgnoresSigterm => {
            run.is_killed = true;
            run.timers.insert(Timer::Stop, kill);
        }
        Stop::Hangs => {}
    }
}

/// Ends the ephemeral containers.
fn detach(run: &mut PodRun, exit_code: i32, reason: &str, now: Now<'_>) {
    for container in &mut run.ephemeral {
        if let ContainerState::Running { since } = &container.state {
            let since = since.clone();
            end_run(container, since, exit_code, None, reason, now);
        }
    }
}

/// Records the end of a container's run, also in its log.
fn end_run(
    container: &mut Container,
    started_at: String,
    exit_code: i32,
    signal: Option<i32>,
    reason: &str,
    now: Now<'_>,
) {
    container.state = ContainerState::Terminated(Termination {
        exit_code,
        signal,
        reason: reason.to_owned(),
        started_at,
        finished_at: now.time.to_owned(),
        run: container.runs,
    });
    if let Some(log) = &container.log {
        log.end(now.timestamp);
    }
}

/// Completes the stop of a terminating pod's containers.
pub(super) fn stop(run: &mut PodRun, now: Now<'_>) {
    let code = if run.is_killed {
        137
    } else {
        run.behaviour.stop_exit_code
    };
    let reason = if code == 0 { "Completed" } else { "Error" };
    for i in 0..run.containers.len() {
        terminate(run, i, code, None, reason, now);
        let container = &mut run.containers[i];
        if let (ContainerState::Waiting { .. }, Some(last)) = (&container.state, &container.last) {
            container.state = ContainerState::Terminated(last.clone());
            container.last = None;
        }
    }
    detach(run, code, reason, now);
    run.timers.clear();
    run.stage = Stage::Stopped;
}

/// Returns the phase of the pod.
///
/// Upstream: `getPhase`.
pub(super) fn phase(run: &PodRun) -> &'static str {
    if let Some(ending) = run.ending {
        return if ending.failed { "Failed" } else { "Succeeded" };
    }
    let main = || run.containers.iter().filter(|c| c.role == Role::Main);
    let is_over = matches!(run.stage, Stage::Ended | Stage::Stopped);
    let init = || run.containers.iter().filter(|c| c.role != Role::Main);
    if is_over && run.containers.iter().any(|container| container.runs > 0) {
        let all_succeeded = main().all(Container::succeeded);
        return if all_succeeded { "Succeeded" } else { "Failed" };
    }
    let has_started = |state: &ContainerState| !matches!(state, ContainerState::Waiting { .. });
    let all_started = main().all(|c| has_started(&c.state) || c.last.is_some());
    if !init().all(|c| c.lets_next_start() || c.role == Role::Sidecar && c.runs > 0) || !all_started
    {
        return "Pending";
    }
    "Running"
}

/// Marks a running container as terminated.
pub(super) fn terminate(
    run: &mut PodRun,
    i: usize,
    exit_code: i32,
    signal: Option<i32>,
    reason: &str,
    now: Now<'_>,
) {
    for timer in [Timer::Ready(i), Timer::Crash(i), Timer::Finish(i)] {
        run.timers.remove(&timer);
    }
    let container = &mut run.containers[i];
    let ContainerState::Running { since } = &container.state else {
        return;
    };
    let since = since.clone();
    if ran_long(&since, now.time) {
        container.exits = 0;
    }
    end_run(container, since, exit_code, signal, reason, now);
    container.ready = container.role == Role::Init && exit_code == 0;
    container.exits += 1;
}

/// Ends a pod at its active deadline.
pub(super) fn exceed_deadline(run: &mut PodRun, now: Now<'_>) {
    let cause = Cause::DeadlineExceeded;
    let failed = true;
    end_as(run, Ending { failed, cause }, now);
}

/// Reports whether a container's run from `since` to `until` was long.
fn ran_long(since: &str, until: &str) -> bool {
    let parse = |time: &str| time.parse::<jiff::Timestamp>().ok();
    let (Some(since), Some(until)) = (parse(since), parse(until)) else {
        return false;
    };
    until.duration_since(since).unsigned_abs() >= LONG_RUN
}
