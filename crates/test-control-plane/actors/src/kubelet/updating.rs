//! In-place changes of a running pod's spec: images, resources, ephemeral containers and the active
//! deadline.

use std::sync::Arc;
use std::time::Duration;

use kube_test_control_plane_api::members::{list, list_at};
use kube_test_control_plane_store::clock::later;
use serde_json::Value;

use super::behaviour::Cause;
use super::container::{Container, Role, State};
use super::ending::Ending;
use super::run::{Now, PodRun, Stage, Timer};

impl PodRun {
    /// Processes a change of the spec. Returns true if the run has changed.
    pub(super) fn update(&mut self, pod: &Value, now: Now<'_>) -> bool {
        if !matches!(self.stage, Stage::Creating | Stage::Running) {
            return false;
        }
        self.plan_deadline(pod);
        let mut changed = self.attach(pod, now);
        for i in 0..self.containers.len() {
            let Some(spec) = spec_of(pod, &self.containers[i]) else {
                continue;
            };
            changed |= self.resize(i, spec, now);
            changed |= self.change_image(i, spec, now);
        }
        changed
    }

    /// Restarts a container with a changed image. Returns true if it did.
    fn change_image(&mut self, i: usize, spec: &Value, now: Now<'_>) -> bool {
        let image = spec.get("image").and_then(Value::as_str);
        let container = &self.containers[i];
        let Some(image) = image.filter(|image| *image != container.image) else {
            return false;
        };
        let is_tried = self.timers.contains_key(&Timer::Pull(i));
        let is_new = container.runs == 0 && !is_tried;
        let will_start = is_new || is_tried || self.timers.contains_key(&Timer::Restart(i));
        let restarts = container.is_running() && container.role != Role::Init;
        if !will_start && !restarts {
            // It has completed, or completes right now.
            return false;
        }
        let container = &mut self.containers[i];
        image.clone_into(&mut container.image);
        container.has_other_image = true;
        if is_new {
            return true;
        }
        if is_tried {
            self.pull_now(i, now);
        } else {
            self.restart_changed(i, now);
        }
        true
    }

    /// Ends a container with a changed definition and restarts it immediately.
    fn restart_changed(&mut self, i: usize, now: Now<'_>) {
        if self.containers[i].is_running() {
            let name = &self.containers[i].name;
            let message = format!("Container {name} definition changed, will be restarted");
            self.tell(false, "Killing", message, Some(i));
            self.terminate(i, 0, None, "Completed", now);
        }
        self.containers[i].exits = 0;
        self.timers.insert(Timer::Restart(i), now.at);
    }

    /// Pulls an image immediately, in spite of a back-off for the old one.
    pub(super) fn pull_now(&mut self, i: usize, now: Now<'_>) {
        self.containers[i].state = State::Waiting {
            reason: "ImagePullBackOff",
            message: None,
        };
        self.timers.insert(Timer::Pull(i), now.at);
    }

    /// Changes the resources of a container. Returns true if its requests differ.
    fn resize(&mut self, i: usize, spec: &Value, now: Now<'_>) -> bool {
        let resources = spec.get("resources").cloned().unwrap_or_default();
        let container = &mut self.containers[i];
        if container.resources == resources {
            return false;
        }
        let old = std::mem::replace(&mut container.resources, resources);
        let restarts = list(spec, "resizePolicy").any(|policy| {
            let name = policy["resourceName"].as_str().unwrap_or_default();
            let is_other = ["requests", "limits"].iter().any(|kind| {
                let amount = |resources: &Value| resources.get(kind)?.get(name).cloned();
                amount(&old) != amount(&self.containers[i].resources)
            });
            policy["restartPolicy"] == "RestartContainer" && is_other
        });
        if restarts && self.containers[i].is_running() {
            self.restart_changed(i, now);
        }
        true
    }

    /// Starts new ephemeral containers. Returns true if there are any.
    pub(super) fn attach(&mut self, pod: &Value, now: Now<'_>) -> bool {
        if self.stage != Stage::Running {
            return false;
        }
        let mut found = false;
        for spec in list_at(pod, "/spec/ephemeralContainers") {
            let is_known = |container: &Container| spec["name"] == *container.name;
            if self.ephemeral.iter().any(is_known) {
                continue;
            }
            let mut container = Container::new(spec, Role::Ephemeral, "ContainerCreating");
            container.runs = 1;
            container.state = State::Running {
                since: now.time.to_owned(),
            };
            container.log = Some(Arc::new(self.begin_log(&container, now).0));
            self.ephemeral.push(container);
            found = true;
        }
        found
    }

    /// Plans the end of a pod with an active deadline.
    pub(super) fn plan_deadline(&mut self, pod: &Value) {
        let seconds = pod.pointer("/spec/activeDeadlineSeconds");
        match seconds.and_then(Value::as_u64) {
            None => self.timers.remove(&Timer::Deadline),
            Some(seconds) => {
                let due = later(self.began, Duration::from_secs(seconds));
                self.timers.insert(Timer::Deadline, due)
            }
        };
    }

    /// Ends a pod at its active deadline.
    pub(super) fn exceed_deadline(&mut self, now: Now<'_>) {
        let cause = Cause::DeadlineExceeded;
        let failed = true;
        self.end_as(Ending { failed, cause }, now);
    }
}

fn spec_of<'a>(pod: &'a Value, container: &Container) -> Option<&'a Value> {
    let containers = match container.role {
        Role::Main => "/spec/containers",
        Role::Init | Role::Sidecar => "/spec/initContainers",
        Role::Ephemeral => "/spec/ephemeralContainers",
    };
    list_at(pod, containers).find(|spec| spec["name"] == *container.name)
}
