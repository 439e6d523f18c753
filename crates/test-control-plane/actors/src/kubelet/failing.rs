//! Crashing containers and failing image pulls.

use std::time::Duration;

use kube_apimachinery::go_duration;
use kube_test_control_plane_store::clock::later;

use super::behaviour::Crash;
use super::container::{Container, ContainerState, Role};
use super::ending::terminate;
use super::run::{Now, PodRun, Stage, Timer};
use super::starting::NOTICE;
use super::starting::{crash_of, start, start_next};

pub(super) fn crash(run: &mut PodRun, i: usize, now: Now<'_>) {
    let Some(crash) = crash_of(run, i).cloned() else {
        return;
    };
    run.containers[i].crashes += 1;
    crash_as(run, i, &crash, now);
}

/// Crashes a container immediately. The crash doesn't count as one of the behaviour's.
pub(super) fn crash_now(run: &mut PodRun, crash: &Crash, now: Now<'_>) {
    let is_meant = |container: &Container| match &crash.container {
        Some(name) => *name == container.name,
        None => container.role == Role::Main,
    };
    if let Some(i) = run.containers.iter().position(is_meant)
        && run.containers[i].is_running()
    {
        crash_as(run, i, crash, now);
    }
}

/// Ends a container with the crash's exit code and reason.
fn crash_as(run: &mut PodRun, i: usize, crash: &Crash, now: Now<'_>) {
    let code = crash.exit_code.unwrap_or_else(|| match crash.signal {
        Some(signal) => signal.saturating_add(128),
        None if crash.reason == "OOMKilled" => 137,
        None => 1,
    });
    terminate(run, i, code, crash.signal, &crash.reason, now);
    restart_later(run, i, now);
}

/// Ends an init container after its time, or a main container whose own command has ended.
pub(super) fn finish(run: &mut PodRun, i: usize, now: Now<'_>) {
    let container = &run.containers[i];
    if let (Some(_), Some(log)) = (container.end, &container.log) {
        log.complete(now.timestamp);
    }
    let code = container.end.map_or(0, |end| end.code);
    exit(run, i, code, now);
}

/// Ends a run of a main container, if it still goes on.
pub(super) fn exit_run(run: &mut PodRun, name: &str, nth: u32, code: i32, now: Now<'_>) {
    let is_meant = |container: &Container| {
        container.role == Role::Main
            && container.name == name
            && container.runs == nth
            && container.is_running()
    };
    if let Some(i) = run.containers.iter().position(is_meant) {
        exit(run, i, code, now);
    }
}

/// Ends a container on its own.
fn exit(run: &mut PodRun, i: usize, code: i32, now: Now<'_>) {
    let reason = if code == 0 { "Completed" } else { "Error" };
    terminate(run, i, code, None, reason, now);
    restart_later(run, i, now);
}

/// Plans the restart after a container's exit.
pub(super) fn restart_later(run: &mut PodRun, i: usize, now: Now<'_>) {
    let container = &run.containers[i];
    let succeeded = container.succeeded();
    let restarts = match (container.role, run.restart_policy.as_str()) {
        (Role::Sidecar, _) | (Role::Main, "Always") => true,
        (_, "Never") => false,
        _ => !succeeded,
    };
    if restarts {
        run.timers.insert(Timer::Restart(i), now.at + NOTICE);
    } else if container.role == Role::Init && succeeded {
        start_next(run, now);
    } else if is_finished(run) {
        run.timers.clear();
        run.stage = Stage::Ended;
    }
}

/// Reports whether no container will run again.
fn is_finished(run: &PodRun) -> bool {
    let failed_init = run.restart_policy == "Never"
        && run.containers.iter().any(|container| {
            let is_init = container.role == Role::Init;
            is_init && container.ended().is_some_and(|end| end.exit_code != 0)
        });
    let main = || run.containers.iter().filter(|c| c.role == Role::Main);
    let all_ended = main().all(|container| {
        matches!(&container.state, ContainerState::Terminated(end)
            if run.restart_policy == "Never" || end.exit_code == 0)
    });
    failed_init || all_ended
}

/// Restarts a container after its exit was noticed, or after its back-off.
pub(super) fn restart(run: &mut PodRun, i: usize, now: Now<'_>) {
    let container = &mut run.containers[i];
    if let ContainerState::Terminated(end) = &container.state {
        let end = end.clone();
        container.last = Some(end);
        // The first restart is immediate.
        if container.exits > 1 {
            let wait = now.back_off.after(container.exits - 1);
            back_off(run, i, wait, now);
            return;
        }
    }
    run.containers[i].restarts += 1;
    start(run, i, now);
}

fn back_off(run: &mut PodRun, i: usize, wait: Duration, now: Now<'_>) {
    let (name, key, uid) = (run.containers[i].name.clone(), &run.key, &run.uid);
    let pod = format!("{}_{}", key.name, key.namespace);
    let message = format!(
        "back-off {} restarting failed container={name} pod={pod}({uid})",
        go_duration::format(wait)
    );
    let event = format!("Back-off restarting failed container {name} in pod {pod}({uid})");
    run.containers[i].state = ContainerState::Waiting {
        reason: "CrashLoopBackOff",
        message: Some(message),
    };
    run.tell(true, "BackOff", event, Some(i));
    // Counted from the container's exit.
    let due = later(now.at, wait.saturating_sub(NOTICE));
    run.timers.insert(Timer::Restart(i), due);
}

/// Reports a back-off of the image pull, or retries the pull.
pub(super) fn pull_again(run: &mut PodRun, i: usize, now: Now<'_>) {
    let container = &mut run.containers[i];
    let ContainerState::Waiting { reason, message } = &container.state else {
        return;
    };
    if *reason != "ErrImagePull" {
        start(run, i, now);
        return;
    }
    let image = &container.image;
    let back_off = format!("Back-off pulling image {image:?}");
    let error = message.as_deref().unwrap_or_default();
    let message = format!("{back_off}: ErrImagePull: {error}");
    let wait = now.back_off.after(container.failed_pulls);
    container.state = ContainerState::Waiting {
        reason: "ImagePullBackOff",
        message: Some(message),
    };
    run.tell(false, "BackOff", back_off, Some(i));
    let error = "Error: ImagePullBackOff".to_owned();
    run.tell(true, "Failed", error, Some(i));
    let due = later(now.at, wait.saturating_sub(NOTICE));
    run.timers.insert(Timer::Pull(i), due);
}
