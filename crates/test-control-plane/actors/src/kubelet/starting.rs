//! Starts of containers, and their failing image pulls.

use std::sync::Arc;
use std::time::Duration;

use kube_test_control_plane_store::clock::later;

use super::behaviour::{Crash, Outcome};
use super::container::{ContainerState, Role, full_name};
use super::own_command::begin_log;
use super::references;
use super::run::{Now, PodRun, Stage, Timer};

/// Time until the kubelet notices a container's exit or a failed image pull.
pub(super) const NOTICE: Duration = Duration::from_secs(1);

/// Starts the next init container, or all main containers.
pub(super) fn start_next(run: &mut PodRun, now: Now<'_>) {
    for i in 0..run.containers.len() {
        let container = &run.containers[i];
        let is_new = container.runs == 0 && container.failed_pulls == 0;
        if container.role == Role::Main {
            if is_new {
                start(run, i, now);
            }
        } else {
            if is_new {
                start(run, i, now);
            }
            if !run.containers[i].lets_next_start() {
                return;
            }
        }
    }
}

/// Starts a container, unless its image can't be pulled or an object is missing.
pub(super) fn start(run: &mut PodRun, i: usize, now: Now<'_>) {
    if pull_fails(run, i, now) || references::config_fails(run, i, now) {
        return;
    }
    tell_started(run, i);
    let (log, end) = begin_log(run, &run.containers[i], now);
    let container = &mut run.containers[i];
    container.previous_log = container.log.replace(Arc::new(log));
    container.end = end.filter(|_| container.role == Role::Main);
    container.runs += 1;
    container.state = ContainerState::Running {
        since: now.time.to_owned(),
    };
    let (role, nth) = (container.role, container.runs);
    match role {
        Role::Init => {
            let time = run.draw(run.behaviour.init_delay, "init", nth, now);
            run.plan(Timer::Finish(i), time, now);
        }
        Role::Sidecar => run.containers[i].ready = true,
        Role::Main => {
            plan_readiness(run, i, now);
            plan_end(run, i, now);
        }
        Role::Ephemeral => {}
    }
    plan_crash(run, i, now);
}

/// Plans the readiness or the end of a running main container.
pub(super) fn plan_readiness(run: &mut PodRun, i: usize, now: Now<'_>) {
    let (delay, nth) = (run.behaviour.ready_delay, run.containers[i].runs);
    let time = run.draw(delay, "ready", nth, now);
    match run.behaviour.outcome {
        Outcome::Ready => run.plan(Timer::Ready(i), time, now),
        Outcome::Fails | Outcome::Succeeds => {
            if !run.timers.contains_key(&Timer::End) {
                run.plan(Timer::End, time, now);
            }
        }
        Outcome::NeverReady => run.report_unready(i),
        Outcome::NeverStarts => {}
    }
}

/// Plans the exit of a container whose own command ends, if its outcome is `Ready`.
fn plan_end(run: &mut PodRun, i: usize, now: Now<'_>) {
    if run.behaviour.outcome == Outcome::Ready
        && let Some(end) = run.containers[i].end
    {
        run.plan(Timer::Finish(i), end.after, now);
    }
}

fn tell_started(run: &mut PodRun, i: usize) {
    run.tell_pulled(i);
    run.tell(false, "Created", "Container created".to_owned(), Some(i));
    run.tell(false, "Started", "Container started".to_owned(), Some(i));
}

/// Returns the next crash of a container, if any.
pub(super) fn crash_of(run: &PodRun, i: usize) -> Option<&Crash> {
    let crash = run.behaviour.crash.as_ref()?;
    let container = &run.containers[i];
    let is_meant = match &crash.container {
        Some(name) => *name == container.name,
        None => run.containers.iter().position(|c| c.role == Role::Main) == Some(i),
    };
    let again = crash.times.is_none_or(|times| container.crashes < times);
    Some(crash).filter(|_| is_meant && again)
}

/// Plans the crash of a running container, or cancels it.
pub(super) fn plan_crash(run: &mut PodRun, i: usize, now: Now<'_>) {
    let Some(after) = crash_of(run, i).map(|crash| crash.after) else {
        run.timers.remove(&Timer::Crash(i));
        return;
    };
    let nth = run.containers[i].runs;
    let due = later(now.at, run.draw(after, "crash", nth, now));
    run.timers.insert(Timer::Crash(i), due);
    run.timers.remove(&Timer::Finish(i));
}

/// Reports whether the pull of a container's image fails; the container then waits.
pub(super) fn pull_fails(run: &mut PodRun, i: usize, now: Now<'_>) -> bool {
    let Some(failure) = &run.behaviour.image_pull_failure else {
        return false;
    };
    let container = &run.containers[i];
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
    run.tell(
        false,
        "Pulling",
        format!("Pulling image {image:?}"),
        Some(i),
    );
    let failed = format!("Failed to pull image {image:?}: {message}");
    run.tell(true, "Failed", failed, Some(i));
    run.tell(true, "Failed", "Error: ErrImagePull".to_owned(), Some(i));
    let container = &mut run.containers[i];
    container.failed_pulls += 1;
    container.state = ContainerState::Waiting {
        reason: "ErrImagePull",
        message: Some(message),
    };
    run.timers.insert(Timer::Pull(i), now.at + NOTICE);
    true
}

/// Tries again to create the containers that lack an object.
pub(super) fn retry_config(run: &mut PodRun, now: Now<'_>) {
    if run.stage != Stage::Running {
        return;
    }
    for i in 0..run.containers.len() {
        let container = &run.containers[i];
        if !references::lacks_object(container) {
            continue;
        }
        if container.role != Role::Main && container.runs == 0 {
            // Init containers start in order.
            start_next(run, now);
        } else {
            start(run, i, now);
        }
    }
}
