//! Adoption of a pod's existing status, after its node was registered again or another client wrote
//! the status.

use kube_test_control_plane_api::members::{list_at, number_at, text, text_at};
use serde_json::Value;

use super::container::{ContainerState, Role, Termination};
use super::ending::terminate;
use super::failing::restart_later;
use super::readiness::become_ready;
use super::run::{Ending, Now, PodRun, Stage, Timer};
use super::starting::{plan_crash, plan_readiness, start_next};
use super::status::CONDITIONS;
use super::status::report;

/// Adopts the status of a pod.
pub(super) fn adopt(run: &mut PodRun, pod: &Value, now: Now<'_>) {
    adopt_times(run, pod, now);
    let phase = text_at(pod, "/status/phase");
    match phase {
        "Failed" | "Succeeded" => {
            run.timers.clear();
            adopt_containers(run, pod);
            run.stage = Stage::Ended;
            let failed = phase == "Failed";
            let cause = run.behaviour.cause;
            run.ending = Some(Ending { failed, cause });
        }
        "Running" => {
            run.timers.clear();
            adopt_containers(run, pod);
            run.stage = Stage::Running;
            let address = text_at(pod, "/status/podIP");
            run.pod_ip = Some(address.to_owned()).filter(|address| !address.is_empty());
            resume_containers(run, now);
            run.plan_deadline(pod);
        }
        _ => return,
    }
    run.reported = report(run, pod, now.time);
}

/// Adopts the pod's start time and the transition times of its conditions.
fn adopt_times(run: &mut PodRun, pod: &Value, now: Now<'_>) {
    let started = text_at(pod, "/status/startTime");
    let parse = |time: &str| time.parse::<jiff::Timestamp>().ok();
    if let (Some(since), Some(until)) = (parse(started), parse(now.time)) {
        started.clone_into(&mut run.start_time);
        let ago = until.duration_since(since).max(jiff::SignedDuration::ZERO);
        run.began = now.at.checked_sub(ago.unsigned_abs()).unwrap_or(now.at);
    }
    for condition in list_at(pod, "/status/conditions") {
        let name = CONDITIONS.iter().find(|name| condition["type"] == **name);
        let since = text(condition, "lastTransitionTime");
        if let Some(name) = name.filter(|_| !since.is_empty()) {
            let is_true = condition["status"] == "True";
            run.transitions.insert(name, (is_true, since.to_owned()));
        }
    }
}

/// Adopts the state of the containers. A container without a status is running.
fn adopt_containers(run: &mut PodRun, pod: &Value) {
    let is_over = matches!(text_at(pod, "/status/phase"), "Failed" | "Succeeded");
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    for container in &mut run.containers {
        let mut statuses = statuses.iter().flat_map(|pointer| list_at(pod, pointer));
        let Some(status) = statuses.find(|status| status["name"] == *container.name) else {
            if !is_over {
                container.runs = 1;
                container.ready = is_ready(pod);
                let since = run.start_time.clone();
                container.state = ContainerState::Running { since };
            }
            continue;
        };
        container.ready = status["ready"] == true;
        container.restarts = u32::try_from(number_at(status, "/restartCount")).unwrap_or(0);
        let run = container.restarts.saturating_add(1);
        let last = |run| termination(status.pointer("/lastState/terminated"), run);
        if let Some(running) = status.pointer("/state/running") {
            let since = text(running, "startedAt").to_owned();
            container.state = ContainerState::Running { since };
            container.runs = run;
            container.last = last(container.restarts);
        } else if let Some(end) = termination(status.pointer("/state/terminated"), run) {
            container.state = ContainerState::Terminated(end);
            container.runs = run;
            container.last = last(container.restarts);
        } else if let Some(end) = last(run) {
            container.last = Some(end);
            container.runs = run;
        }
        container.exits = container.restarts;
    }
}

/// Plans the next steps of the containers of a running pod.
fn resume_containers(run: &mut PodRun, now: Now<'_>) {
    for i in 0..run.containers.len() {
        let container = &run.containers[i];
        match &container.state {
            ContainerState::Terminated(_)
                if container.role == Role::Init && container.succeeded() =>
            {
                continue;
            }
            ContainerState::Terminated(_) => {
                restart_later(run, i, now);
                continue;
            }
            ContainerState::Waiting { .. } => {
                if container.runs > 0 {
                    run.timers.insert(Timer::Restart(i), now.at);
                }
                continue;
            }
            ContainerState::Running { .. } => {}
        }
        match container.role {
            // The pod is past its init containers.
            Role::Init => terminate(run, i, 0, None, "Completed", now),
            Role::Sidecar | Role::Ephemeral => {}
            Role::Main => {
                if run.containers[i].ready {
                    become_ready(run, i, now);
                } else {
                    plan_readiness(run, i, now);
                }
                plan_crash(run, i, now);
            }
        }
    }
    start_next(run, now);
    run.pending_events.clear();
}

fn termination(value: Option<&Value>, run: u32) -> Option<Termination> {
    let value = value?;
    let number = |member: &str| {
        let number = value.get(member).and_then(Value::as_i64)?;
        i32::try_from(number).ok()
    };
    Some(Termination {
        exit_code: number("exitCode").unwrap_or(0),
        signal: number("signal"),
        reason: text(value, "reason").to_owned(),
        started_at: text(value, "startedAt").to_owned(),
        finished_at: text(value, "finishedAt").to_owned(),
        run,
    })
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = list_at(pod, "/status/conditions");
    conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
}
