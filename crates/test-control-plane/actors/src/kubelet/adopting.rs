//! Adoption of a pod's existing status, after its node was registered again or another client wrote
//! the status.

use kube_test_control_plane_api::members::{list_at, number_at, text, text_at};
use serde_json::Value;

use super::container::{Role, State, Termination};
use super::ending::Ending;
use super::run::{Now, PodRun, Stage, Timer};
use super::status::CONDITIONS;

impl PodRun {
    /// Adopts the status of a pod.
    pub(super) fn adopt(&mut self, pod: &Value, now: Now<'_>) {
        self.adopt_times(pod, now);
        let phase = text_at(pod, "/status/phase");
        match phase {
            "Failed" | "Succeeded" => {
                self.timers.clear();
                self.adopt_containers(pod);
                self.stage = Stage::Ended;
                let failed = phase == "Failed";
                let cause = self.behaviour.cause;
                self.ending = Some(Ending { failed, cause });
            }
            "Running" => {
                self.timers.clear();
                self.adopt_containers(pod);
                self.stage = Stage::Running;
                let address = text_at(pod, "/status/podIP");
                self.pod_ip = Some(address.to_owned()).filter(|address| !address.is_empty());
                self.resume_containers(now);
                self.plan_deadline(pod);
            }
            _ => return,
        }
        self.reported = self.report(pod, now.time);
    }

    /// Adopts the pod's start time and the transition times of its conditions.
    fn adopt_times(&mut self, pod: &Value, now: Now<'_>) {
        let started = text_at(pod, "/status/startTime");
        let parse = |time: &str| time.parse::<jiff::Timestamp>().ok();
        if let (Some(since), Some(until)) = (parse(started), parse(now.time)) {
            started.clone_into(&mut self.start_time);
            let ago = until.duration_since(since).max(jiff::SignedDuration::ZERO);
            self.began = now.at.checked_sub(ago.unsigned_abs()).unwrap_or(now.at);
        }
        for condition in list_at(pod, "/status/conditions") {
            let name = CONDITIONS.iter().find(|name| condition["type"] == **name);
            let since = text(condition, "lastTransitionTime");
            if let Some(name) = name.filter(|_| !since.is_empty()) {
                let is_true = condition["status"] == "True";
                self.transitions.insert(name, (is_true, since.to_owned()));
            }
        }
    }

    /// Adopts the state of the containers. A container without a status is running.
    fn adopt_containers(&mut self, pod: &Value) {
        let is_over = matches!(text_at(pod, "/status/phase"), "Failed" | "Succeeded");
        let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
        for container in &mut self.containers {
            let mut statuses = statuses.iter().flat_map(|pointer| list_at(pod, pointer));
            let Some(status) = statuses.find(|status| status["name"] == *container.name) else {
                if !is_over {
                    container.runs = 1;
                    container.ready = is_ready(pod);
                    let since = self.start_time.clone();
                    container.state = State::Running { since };
                }
                continue;
            };
            container.ready = status["ready"] == true;
            container.restarts = u32::try_from(number_at(status, "/restartCount")).unwrap_or(0);
            let run = container.restarts.saturating_add(1);
            let last = |run| termination(status.pointer("/lastState/terminated"), run);
            if let Some(running) = status.pointer("/state/running") {
                let since = text(running, "startedAt").to_owned();
                container.state = State::Running { since };
                container.runs = run;
                container.last = last(container.restarts);
            } else if let Some(end) = termination(status.pointer("/state/terminated"), run) {
                container.state = State::Terminated(end);
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
    fn resume_containers(&mut self, now: Now<'_>) {
        for i in 0..self.containers.len() {
            let container = &self.containers[i];
            match &container.state {
                State::Terminated(_) if container.role == Role::Init && container.succeeded() => {
                    continue;
                }
                State::Terminated(_) => {
                    self.restart_later(i, now);
                    continue;
                }
                State::Waiting { .. } => {
                    if container.runs > 0 {
                        self.timers.insert(Timer::Restart(i), now.at);
                    }
                    continue;
                }
                State::Running { .. } => {}
            }
            match container.role {
                // The pod is past its init containers.
                Role::Init => self.terminate(i, 0, None, "Completed", now),
                Role::Sidecar | Role::Ephemeral => {}
                Role::Main => {
                    if self.containers[i].ready {
                        self.become_ready(i, now);
                    } else {
                        self.plan_readiness(i, now);
                    }
                    self.plan_crash(i, now);
                }
            }
        }
        self.start_next(now);
        self.pending_events.clear();
    }
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
