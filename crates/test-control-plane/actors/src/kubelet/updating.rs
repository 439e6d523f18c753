//! In-place changes of a running pod's spec: images, resources, ephemeral containers and the active
//! deadline.

use std::sync::Arc;

use kube_test_control_plane_api::members::{list, list_at};
use serde_json::Value;

use super::behaviour::Resize;
use super::container::{Container, ContainerState, Role};
use super::ending::terminate;
use super::own_command::begin_log;
use super::run::{Now, PodRun, Stage, Timer};

/// Processes a change of the spec. Returns true if the run has changed.
pub(super) fn update(run: &mut PodRun, pod: &Value, now: Now<'_>) -> bool {
    if !matches!(run.stage, Stage::Creating | Stage::Running) {
        return false;
    }
    run.plan_deadline(pod);
    let mut changed = attach(run, pod, now);
    for i in 0..run.containers.len() {
        let Some(spec) = spec_of(pod, &run.containers[i]) else {
            continue;
        };
        changed |= resize(run, i, spec);
        changed |= change_image(run, i, spec, now);
    }
    if changed {
        settle_resize(run, now);
    }
    changed
}

/// Restarts a container with a changed image. Returns true if it did.
fn change_image(run: &mut PodRun, i: usize, spec: &Value, now: Now<'_>) -> bool {
    let image = spec.get("image").and_then(Value::as_str);
    let container = &run.containers[i];
    let Some(image) = image.filter(|image| *image != container.image) else {
        return false;
    };
    let is_tried = run.timers.contains_key(&Timer::Pull(i));
    let is_new = container.runs == 0 && !is_tried;
    let will_start = is_new || is_tried || run.timers.contains_key(&Timer::Restart(i));
    let restarts = container.is_running() && container.role != Role::Init;
    if !will_start && !restarts {
        // It has completed, or completes right now.
        return false;
    }
    let container = &mut run.containers[i];
    image.clone_into(&mut container.image);
    container.has_other_image = true;
    if is_new {
        return true;
    }
    if is_tried {
        pull_now(run, i, now);
    } else {
        restart_changed(run, i, now);
    }
    true
}

/// Ends a container with a changed definition and restarts it immediately.
fn restart_changed(run: &mut PodRun, i: usize, now: Now<'_>) {
    if run.containers[i].is_running() {
        let name = &run.containers[i].name;
        let message = format!("Container {name} definition changed, will be restarted");
        run.tell(false, "Killing", message, Some(i));
        terminate(run, i, 0, None, "Completed", now);
    }
    run.containers[i].exits = 0;
    run.timers.insert(Timer::Restart(i), now.at);
}

/// Pulls an image immediately, in spite of a back-off for the old one.
pub(super) fn pull_now(run: &mut PodRun, i: usize, now: Now<'_>) {
    run.containers[i].state = ContainerState::Waiting {
        reason: "ImagePullBackOff",
        message: None,
    };
    run.timers.insert(Timer::Pull(i), now.at);
}

/// Notes the desired resources of a container. Returns true if they are others than before.
fn resize(run: &mut PodRun, i: usize, spec: &Value) -> bool {
    let resources = spec.get("resources").cloned().unwrap_or_default();
    let container = &mut run.containers[i];
    let desired = Some(resources).filter(|desired| *desired != container.resources);
    let is_other = container.desired_resources != desired;
    container.desired_resources = desired;
    is_other
}

/// Begins, carries out or puts off the resize of a pod, as its behaviour says.
pub(super) fn settle_resize(run: &mut PodRun, now: Now<'_>) {
    let is_desired = is_resized(run);
    if !is_desired || run.behaviour.resize != Resize::Applies {
        run.timers.remove(&Timer::Resize);
    } else if run.behaviour.resize_delay.is_zero() {
        carry_out(run, now);
    } else if !run.timers.contains_key(&Timer::Resize) {
        let time = run.draw(run.behaviour.resize_delay, "resize", 0, now);
        run.plan(Timer::Resize, time, now);
    }
}

/// Reports whether a container is to run with other resources.
pub(super) fn is_resized(run: &PodRun) -> bool {
    let mut containers = run.containers.iter();
    containers.any(|container| container.desired_resources.is_some())
}

/// Gives the containers their desired resources.
pub(super) fn carry_out(run: &mut PodRun, now: Now<'_>) {
    run.timers.remove(&Timer::Resize);
    for i in 0..run.containers.len() {
        let container = &mut run.containers[i];
        let Some(desired) = container.desired_resources.take() else {
            continue;
        };
        let old = std::mem::replace(&mut container.resources, desired);
        let restarts = list(&container.spec, "resizePolicy").any(|policy| {
            let name = policy["resourceName"].as_str().unwrap_or_default();
            let is_other = ["requests", "limits"].iter().any(|kind| {
                let amount = |resources: &Value| resources.get(kind)?.get(name).cloned();
                amount(&old) != amount(&container.resources)
            });
            policy["restartPolicy"] == "RestartContainer" && is_other
        });
        if restarts && container.is_running() {
            restart_changed(run, i, now);
        }
    }
}

/// Starts new ephemeral containers. Returns true if there are any.
pub(super) fn attach(run: &mut PodRun, pod: &Value, now: Now<'_>) -> bool {
    if run.stage != Stage::Running {
        return false;
    }
    let mut found = false;
    for spec in list_at(pod, "/spec/ephemeralContainers") {
        let is_known = |container: &Container| spec["name"] == *container.name;
        if run.ephemeral.iter().any(is_known) {
            continue;
        }
        let mut container = Container::new(spec, Role::Ephemeral, "ContainerCreating");
        container.runs = 1;
        container.state = ContainerState::Running {
            since: now.time.to_owned(),
        };
        container.log = Some(Arc::new(begin_log(run, &container, now).0));
        run.ephemeral.push(container);
        found = true;
    }
    found
}

fn spec_of<'a>(pod: &'a Value, container: &Container) -> Option<&'a Value> {
    let containers = match container.role {
        Role::Main => "/spec/containers",
        Role::Init | Role::Sidecar => "/spec/initContainers",
        Role::Ephemeral => "/spec/ephemeralContainers",
    };
    list_at(pod, containers).find(|spec| spec["name"] == *container.name)
}
