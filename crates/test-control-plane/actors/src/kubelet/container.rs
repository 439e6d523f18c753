//! A container as its node runs it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use kube_test_control_plane_api::members::text;

use super::log::ContainerLog;
use super::shell::Files;

/// A container's role in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs to its end before the next one starts.
    Init,
    /// An init container that keeps running.
    Sidecar,
    /// A regular container of the pod.
    Main,
    /// Added to a running pod for debugging.
    Ephemeral,
}

/// A container's exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Termination {
    pub(super) exit_code: i32,
    pub(super) signal: Option<i32>,
    pub(super) reason: String,
    pub(super) started_at: String,
    pub(super) finished_at: String,
    /// Number of the run, counted from 1.
    pub(super) run: u32,
}

/// State of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContainerState {
    Waiting {
        reason: &'static str,
        message: Option<String>,
    },
    Running {
        since: String,
    },
    Terminated(Termination),
}

/// The end of a container's own command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exited {
    /// Time from the start of the container.
    pub(super) after: Duration,
    pub(super) code: i32,
}

/// A container.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: String,
    /// True if the image differs from the one at the pod's creation.
    pub(super) has_other_image: bool,
    /// The resources with which it runs.
    pub(super) resources: Value,
    /// Those of its spec, while its node hasn't carried out their change.
    pub(super) desired_resources: Option<Value>,
    pub(super) role: Role,
    pub(super) state: ContainerState,
    /// Exit of the previous run.
    pub(super) last: Option<Termination>,
    pub(super) ready: bool,
    pub(super) restarts: u32,
    /// Number of starts.
    pub(super) runs: u32,
    /// Number of exits without a long run in between.
    pub(super) exits: u32,
    /// Number of the behaviour's crashes.
    pub(super) crashes: u32,
    /// Number of failed image pulls.
    pub(super) failed_pulls: u32,
    /// Its spec at its creation.
    pub(super) spec: Value,
    /// The log of the latest run.
    pub(super) log: Option<Arc<ContainerLog>>,
    /// The log of the run before.
    pub(super) previous_log: Option<Arc<ContainerLog>>,
    /// The end of the latest run, if its own command ends.
    pub(super) end: Option<Exited>,
    /// The files that its processes have written.
    pub(super) files: Files,
}

impl Container {
    pub(super) fn new(spec: &Value, role: Role, waits_for: &'static str) -> Self {
        Self {
            name: text(spec, "name").to_owned(),
            image: text(spec, "image").to_owned(),
            has_other_image: false,
            resources: spec.get("resources").cloned().unwrap_or_default(),
            desired_resources: None,
            role,
            state: ContainerState::Waiting {
                reason: waits_for,
                message: None,
            },
            last: None,
            ready: false,
            restarts: 0,
            runs: 0,
            exits: 0,
            crashes: 0,
            failed_pulls: 0,
            spec: spec.clone(),
            log: None,
            previous_log: None,
            end: None,
            files: Files::default(),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, ContainerState::Running { .. })
    }

    /// Reports whether the container's latest run succeeded.
    pub(super) fn succeeded(&self) -> bool {
        matches!(&self.state, ContainerState::Terminated(end) if end.exit_code == 0)
    }

    /// Returns the exit of the latest run, if it has ended and no new run has begun.
    pub(super) fn ended(&self) -> Option<&Termination> {
        match &self.state {
            ContainerState::Terminated(end) => Some(end),
            ContainerState::Waiting { .. } => self.last.as_ref(),
            ContainerState::Running { .. } => None,
        }
    }

    /// Reports whether the next container may start.
    pub(super) fn lets_next_start(&self) -> bool {
        match self.role {
            Role::Sidecar => self.is_running(),
            _ => self.succeeded(),
        }
    }

    /// Returns the container's status in the API; `uid` is the pod's.
    pub(super) fn status(&self, uid: &str) -> Value {
        let mut status = json!({
            "name": self.name,
            "image": if self.runs > 0 { full_name(&self.image) } else { self.image.clone() },
            "imageID": if self.runs > 0 { image_id(&self.image) } else { String::new() },
            "ready": self.ready,
            "restartCount": self.restarts,
            "state": self.state.value(uid, &self.name),
            "lastState": {},
        });
        if self.role != Role::Ephemeral {
            status["started"] = json!(self.is_running());
        }
        if self.runs > 0 {
            status["resources"] = match &self.resources {
                Value::Object(_) => self.resources.clone(),
                _ => json!({}),
            };
            if let Some(requests) = self.resources.get("requests") {
                status["allocatedResources"] = requests.clone();
            }
        }
        if let Some(last) = &self.last {
            status["lastState"] = json!({"terminated": last.value(uid, &self.name)});
        }
        if self.runs > 0 {
            status["containerID"] = json!(container_id(uid, &self.name, self.runs));
        }
        status
    }
}

impl ContainerState {
    fn value(&self, uid: &str, name: &str) -> Value {
        match self {
            Self::Waiting {
                reason,
                message: None,
            } => json!({"waiting": {"reason": reason}}),
            Self::Waiting { reason, message } => {
                json!({"waiting": {"reason": reason, "message": message}})
            }
            Self::Running { since } => json!({"running": {"startedAt": since}}),
            Self::Terminated(end) => json!({"terminated": end.value(uid, name)}),
        }
    }
}

impl Termination {
    fn value(&self, uid: &str, name: &str) -> Value {
        let mut value = json!({
            "exitCode": self.exit_code,
            "reason": self.reason,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            "containerID": container_id(uid, name, self.run),
        });
        if let Some(signal) = self.signal {
            value["signal"] = json!(signal);
        }
        value
    }
}

fn container_id(uid: &str, name: &str, run: u32) -> String {
    format!("containerd://{}", digest(&format!("{uid}/{name}/{run}")))
}

/// Returns an image's name with its registry and tag.
pub(super) fn full_name(image: &str) -> String {
    let (repository, _) = repository_and_tag(image);
    let registry = match repository.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => "",
        Some(_) => "docker.io/",
        None => "docker.io/library/",
    };
    let has_tag = repository.len() < image.len();
    let tag = if has_tag { "" } else { ":latest" };
    format!("{registry}{image}{tag}")
}

fn image_id(image: &str) -> String {
    let name = full_name(image);
    let (repository, _) = repository_and_tag(&name);
    format!("{repository}@sha256:{}", digest(&name))
}

/// Splits an image's name before its tag or digest.
fn repository_and_tag(image: &str) -> (&str, &str) {
    let name = image.split('@').next().unwrap_or(image);
    let last_part = name.rfind('/').map_or(0, |slash| slash + 1);
    let end = name[last_part..]
        .find(':')
        .map_or(name.len(), |colon| last_part + colon);
    image.split_at(end)
}

/// Returns 64 hexadecimal digits that depend only on the text.
fn digest(text: &str) -> String {
    let rng = crate::seeded_rng::SeededRng::new(0);
    let [a, b, c, d] = [0, 1, 2, 3].map(|part| rng.number(text, "digest", part));
    format!("{a:016x}{b:016x}{c:016x}{d:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_names_get_a_registry_and_a_tag() {
        for (image, full, repository) in [
            (
                "nginx",
                "docker.io/library/nginx:latest",
                "docker.io/library/nginx",
            ),
            (
                "nginx:1",
                "docker.io/library/nginx:1",
                "docker.io/library/nginx",
            ),
            ("org/app:1", "docker.io/org/app:1", "docker.io/org/app"),
            (
                "registry:5000/app",
                "registry:5000/app:latest",
                "registry:5000/app",
            ),
            (
                "ghcr.io/a/b@sha256:ff",
                "ghcr.io/a/b@sha256:ff",
                "ghcr.io/a/b",
            ),
        ] {
            assert_eq!(full_name(image), full);
            let id = image_id(image);
            let (found, digest) = id.split_once("@sha256:").unwrap();
            assert_eq!((found, digest.len()), (repository, 64));
        }
    }
}
