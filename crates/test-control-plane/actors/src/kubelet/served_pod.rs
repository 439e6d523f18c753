//! A pod as the API server sees it through its kubelet.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_test_control_plane_api::members::{list, text};
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_server::containers::KubeletError;

use super::behaviour::PodBehaviour;
use super::container::{Container, ContainerState};
use super::log::ContainerLog;
use super::own_command::{command, environment};
use super::run::{PodRun, Stage};
use super::script::{ContainerName, Handlers};
use super::shell::Files;
use crate::seeded_rng::SeededRng;
use crate::server::ActorServer;

/// A container as it was when the API server asked.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) state: ContainerState,
    pub(super) log: Option<Arc<ContainerLog>>,
    pub(super) previous: Option<Arc<ContainerLog>>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) files: Files,
    /// Number of its runs.
    pub(super) runs: u32,
    /// True if the container reads its standard input.
    pub(super) has_stdin: bool,
    /// True if its standard input ends with the first attached client.
    pub(super) has_stdin_once: bool,
    pub(super) command: Vec<String>,
}

/// A pod as it was when the API server asked.
#[derive(Debug)]
pub(crate) struct ServedPod {
    pub(super) server: ActorServer,
    pub(super) key: Key,
    pub(super) behaviour: PodBehaviour,
    pub(super) handlers: Handlers,
    pub(super) containers: BTreeMap<String, Served>,
    /// The name of the first main container.
    pub(super) main: String,
    pub(super) ports: Vec<u16>,
    pub(super) is_running: bool,
    pub(super) rng: SeededRng,
}

impl ServedPod {
    /// Returns a pod that runs.
    pub(super) fn of(
        run: &PodRun,
        server: ActorServer,
        handlers: Handlers,
        rng: SeededRng,
    ) -> Self {
        let containers = run.all_containers().map(|container| {
            let served = served(container, run);
            (container.name.clone(), served)
        });
        Self {
            server,
            key: run.key.clone(),
            behaviour: run.behaviour.clone(),
            handlers,
            containers: containers.collect(),
            main: run
                .containers
                .first()
                .map_or_else(String::new, |it| it.name.clone()),
            ports: run.containers.iter().flat_map(ports).collect(),
            is_running: matches!(run.stage, Stage::Running | Stage::Stopping),
            rng,
        }
    }

    /// Returns a container that runs.
    pub(super) fn running(&self, name: &str) -> Result<&Served, KubeletError> {
        let found = self.containers.get(name);
        let running = found.filter(|it| matches!(it.state, ContainerState::Running { .. }));
        running.ok_or_else(|| KubeletError::new(500, format!("container not found ({name:?})")))
    }

    /// Returns the log of the run that the options select.
    ///
    /// Upstream: `validateContainerLogStatus`
    pub(super) fn log_of(
        &self,
        name: &str,
        previous: bool,
    ) -> Result<Option<Arc<ContainerLog>>, KubeletError> {
        let pod = &self.key.name;
        let refused = |message: String| KubeletError::new(400, message);
        let Some(container) = self.containers.get(name) else {
            let message = format!("container {name:?} in pod {pod:?} is not available");
            return Err(refused(message));
        };
        if previous {
            let message = || {
                refused(format!(
                    "previous terminated container {name:?} in pod {pod:?} not found"
                ))
            };
            return container.previous.clone().map(Some).ok_or_else(message);
        }
        let ContainerState::Waiting { reason, .. } = &container.state else {
            return Ok(container.log.clone());
        };
        if let Some(log) = &container.previous {
            return Ok(Some(Arc::clone(log)));
        }
        let why = match *reason {
            "ErrImagePull" => "image can't be pulled",
            "ImagePullBackOff" => "trying and failing to pull image",
            other => other,
        };
        Err(refused(format!(
            "container {name:?} in pod {pod:?} is waiting to start: {why}"
        )))
    }

    pub(super) fn name_of(&self, container: &str) -> ContainerName {
        ContainerName {
            namespace: self.key.namespace.to_string(),
            pod: self.key.name.to_string(),
            container: container.to_owned(),
        }
    }
}

fn served(container: &Container, run: &PodRun) -> Served {
    Served {
        state: container.state.clone(),
        log: container.log.clone(),
        previous: container.previous_log.clone(),
        environment: environment(&container.spec, run),
        files: container.files.clone(),
        runs: container.runs,
        has_stdin: container.spec["stdin"] == true,
        has_stdin_once: container.spec["stdinOnce"] == true,
        command: command(&container.spec),
    }
}

fn ports(container: &Container) -> Vec<u16> {
    let ports = list(&container.spec, "ports");
    let ports = ports.filter(|port| text(port, "protocol") != "UDP");
    let numbers = ports.filter_map(|port| port.get("containerPort")?.as_u64());
    numbers
        .filter_map(|port| u16::try_from(port).ok())
        .collect()
}
