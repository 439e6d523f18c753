//! Pods.

use jiff::Timestamp;
use serde::Deserialize;

use super::{Metadata, time};

/// A pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Metadata.
    pub metadata: Metadata,
    /// Desired state.
    pub spec: PodSpec,
    /// Status.
    pub status: PodStatus,
}

/// The desired state of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// Its node; empty before it is scheduled.
    pub node_name: String,
    /// Containers.
    pub containers: Vec<Container>,
    /// Init containers.
    pub init_containers: Vec<Container>,
    /// Gates that keep it from being scheduled.
    pub scheduling_gates: Vec<Gate>,
    /// Required node labels.
    pub node_selector: std::collections::BTreeMap<String, String>,
    /// Volumes.
    pub volumes: Vec<PodVolume>,
    /// Conditions besides the containers' readiness that the pod's readiness needs.
    pub readiness_gates: Vec<ReadinessGate>,
    /// Seconds between SIGTERM and SIGKILL.
    pub termination_grace_period_seconds: Option<i64>,
}

/// A volume of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodVolume {
    /// Name.
    pub name: String,
    /// The claim, if the volume has one.
    pub persistent_volume_claim: Option<ClaimSource>,
}

/// Names of the claims that volumes use.
pub(super) fn claims(volumes: &[PodVolume]) -> impl Iterator<Item = &str> {
    let sources = volumes
        .iter()
        .filter_map(|it| it.persistent_volume_claim.as_ref());
    let names = sources.map(|source| source.claim_name.as_str());
    names.filter(|name| !name.is_empty())
}

/// The claim of a volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimSource {
    /// Name of the claim.
    pub claim_name: String,
}

/// A condition that the pod's readiness needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReadinessGate {
    /// Type of the condition.
    pub condition_type: String,
}

/// A container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Name.
    pub name: String,
    /// Image.
    pub image: String,
    /// The probe that decides about its readiness.
    pub readiness_probe: Option<Probe>,
    /// The probe that its readiness waits for.
    pub startup_probe: Option<Probe>,
}

/// A probe of a container.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Probe {
    /// Seconds before the first try.
    pub initial_delay_seconds: i64,
    /// Seconds between two tries.
    pub period_seconds: i64,
    /// Failures in a row that count.
    pub failure_threshold: i64,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            initial_delay_seconds: 0,
            period_seconds: 10,
            failure_threshold: 3,
        }
    }
}

/// A scheduling gate.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Gate {
    /// Name.
    pub name: String,
}

/// The status of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Phase.
    pub phase: String,
    /// Reason for the phase.
    pub reason: String,
    /// Message about the phase.
    pub message: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Containers.
    pub container_statuses: Vec<ContainerStatus>,
    /// Init containers.
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Time of the kubelet's acceptance.
    #[serde(deserialize_with = "time")]
    pub start_time: Option<Timestamp>,
}

/// A condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
    /// Time of the last change of the status.
    #[serde(deserialize_with = "time")]
    pub last_transition_time: Option<Timestamp>,
}

/// The status of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Name.
    pub name: String,
    /// Readiness.
    pub ready: bool,
    /// Restarts.
    pub restart_count: i64,
    /// State.
    pub state: ContainerState,
    /// State before the last restart.
    pub last_state: ContainerState,
}

/// The state of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It waits.
    pub waiting: Option<ContainerWaiting>,
    /// It runs.
    pub running: Option<ContainerRunning>,
    /// It has ended.
    pub terminated: Option<ContainerTerminated>,
}

/// A running container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerRunning {
    /// Time of the start.
    #[serde(deserialize_with = "time")]
    pub started_at: Option<Timestamp>,
}

/// A waiting container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerWaiting {
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
}

/// An ended container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerTerminated {
    /// Reason.
    pub reason: String,
    /// Exit code.
    pub exit_code: i64,
    /// Time of the end.
    #[serde(deserialize_with = "time")]
    pub finished_at: Option<Timestamp>,
}

/// Longest time that a start takes; a pod that got ready later was unready in between.
const START_SECONDS_MAX: i64 = 3600;

/// Median of the seconds that these pods took to get ready.
pub fn median_start<'a>(pods: impl Iterator<Item = &'a Pod>) -> Option<i64> {
    let mut taken: Vec<i64> = pods.filter_map(Pod::start_seconds).collect();
    taken.sort_unstable();
    taken.get(taken.len() / 2).copied()
}

impl Pod {
    /// Reports whether the pod has ended.
    pub fn is_finished(&self) -> bool {
        self.status.phase == "Failed" || self.status.phase == "Succeeded"
    }

    /// Names of the claims that the pod's volumes use, without those of ephemeral volumes.
    pub fn claims(&self) -> impl Iterator<Item = &str> {
        claims(&self.spec.volumes)
    }

    /// Reports whether a volume of the pod uses this claim.
    pub fn mounts(&self, claim: &str) -> bool {
        self.claims().any(|name| name == claim)
    }

    /// Seconds that the pod took to get ready; `None` if it isn't ready, or was unready since.
    pub fn start_seconds(&self) -> Option<i64> {
        let ready = self.condition("Ready").filter(|_| self.is_ready())?;
        let created = self.metadata.creation_timestamp?;
        let taken = ready.last_transition_time?.duration_since(created);
        let has_restarted = self
            .containers()
            .any(|container| container.restart_count > 0);
        let seconds = taken.as_secs();
        (!has_restarted && (0..=START_SECONDS_MAX).contains(&seconds)).then_some(seconds)
    }

    /// A condition by its type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.kind == kind)
    }

    /// Reports whether the pod is running and ready.
    pub fn is_ready(&self) -> bool {
        let ready = self.condition("Ready");
        self.status.phase == "Running" && ready.is_some_and(|ready| ready.status == "True")
    }

    /// Time of the latest start of a running container.
    pub fn last_start(&self) -> Option<Timestamp> {
        let running = self.containers();
        let running = running.filter_map(|container| container.state.running.as_ref());
        running.filter_map(|running| running.started_at).max()
    }

    /// Statuses of all containers, init containers first.
    pub fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        let status = &self.status;
        let init = status.init_container_statuses.iter();
        init.chain(&status.container_statuses)
    }
}
