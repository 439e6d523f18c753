//! A pod as its node runs it: containers and timers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_store::clock::later;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::behaviour::{BackOff, Cause, Outcome, PodBehaviour};
use super::container::{Container, Role};
use crate::client::ActorClient;
use crate::events::EventRef;
use crate::pods::HostPort;
use crate::runner::identity;
use crate::seeded_rng::SeededRng;
use kube_test_control_plane_server::faults::Delay;

/// A timed step of a pod. The number is the index of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The sandbox is ready and containers may start.
    Start,
    /// An image pull is retried, or its back-off is reported.
    Pull(usize),
    /// A container exits on its own.
    Finish(usize),
    /// A container crashes.
    Crash(usize),
    /// A container's exit is noticed, or its back-off ends.
    Restart(usize),
    /// A container becomes ready.
    Ready(usize),
    /// Readiness changes.
    Readiness,
    /// The pod ends.
    End,
    /// The pod reaches its active deadline.
    Deadline,
    /// The containers of the terminating pod have stopped.
    Stop,
    /// A resize is carried out.
    Resize,
}

/// Stage of a pod's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its containers are being created.
    Creating,
    /// It runs, or tries to start.
    Running,
    /// It has ended in the phase Failed or Succeeded.
    Ended,
    /// It is terminating and its containers stop.
    Stopping,
    /// It is terminating and its containers have stopped.
    Stopped,
}

/// The current time, with the random generator and the back-off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now<'a> {
    pub(super) at: Instant,
    /// The time in the API's format, in whole seconds.
    pub(super) time: &'a str,
    /// The time with its fraction of a second.
    pub(super) timestamp: Timestamp,
    pub(super) rng: SeededRng,
    pub(super) back_off: BackOff,
    /// The address of the API server's service.
    pub(super) service_host: Ipv4Addr,
    /// Looks up the objects that pods refer to; `None` if pods start without them.
    pub(super) references: Option<&'a ActorClient>,
}

/// An occurrence that may be reported as an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingEvent {
    pub(super) warning: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// The affected part of the pod.
    pub(super) field_path: Option<String>,
}

impl PendingEvent {
    pub(super) fn as_event(&self) -> EventRef<'_> {
        EventRef {
            warning: self.warning,
            reason: self.reason,
            message: &self.message,
            field_path: self.field_path.as_deref(),
        }
    }
}

/// A pod's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) failed: bool,
    pub(crate) cause: Cause,
}

impl Ending {
    /// The end of a pod rejected because another pod uses one of its host ports.
    pub(super) fn port_conflict() -> Self {
        let (failed, cause) = (true, Cause::NodePorts);
        Self { failed, cause }
    }
}

/// A pod on its node.
#[derive(Debug)]
pub(super) struct PodRun {
    pub(super) key: Key,
    /// Name of the pod's random draws.
    draws: String,
    pub(super) uid: Box<str>,
    pub(super) node: Box<str>,
    pub(super) behaviour: PodBehaviour,
    pub(super) restart_policy: String,
    pub(super) host_ip: String,
    /// The address of the API server's service.
    pub(super) service_host: Ipv4Addr,
    /// `None` until the sandbox exists.
    pub(super) pod_ip: Option<String>,
    pub(super) start_time: String,
    /// The same as a tokio instant.
    pub(super) began: Instant,
    pub(super) stage: Stage,
    /// The host ports that it needs.
    pub(super) host_ports: Vec<HostPort>,
    /// Init containers first.
    pub(super) containers: Vec<Container>,
    /// Containers added at run time.
    pub(super) ephemeral: Vec<Container>,
    pub(super) ending: Option<Ending>,
    /// Start of its termination, and the end of its grace period.
    pub(super) stopping: Option<(Instant, Instant)>,
    /// True if its containers are killed at the end of the grace period.
    pub(super) is_killed: bool,
    pub(super) timers: BTreeMap<Timer, Instant>,
    /// Start times of timers whose delay may change.
    pub(super) since: BTreeMap<Timer, Instant>,
    /// Current step of the readiness script.
    pub(super) step: u32,
    /// Errors in its annotations.
    complaints: Vec<String>,
    /// Status and transition time of each condition.
    pub(super) transitions: BTreeMap<&'static str, (bool, String)>,
    /// The last written status.
    pub(super) reported: Option<Value>,
    /// The status being written.
    pub(super) sent: Option<Value>,
    pub(super) pending_events: Vec<PendingEvent>,
    /// Missing objects to wait for.
    pub(super) awaited: BTreeSet<Key>,
    /// The reported failures to mount volumes.
    pub(super) failed_mounts: BTreeSet<String>,
}

impl PodRun {
    /// Starts the run of a pod that was just bound to its node.
    pub(super) fn new(
        (key, uid, nth): (Key, Box<str>, u32),
        pod: &Value,
        behaviour: PodBehaviour,
        host_ip: String,
        now: Now<'_>,
    ) -> Self {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
        let mut run = Self {
            draws: identity(&key, nth),
            key,
            uid,
            node: text("/spec/nodeName").unwrap_or_default().into(),
            behaviour,
            restart_policy: text("/spec/restartPolicy").unwrap_or("Always").to_owned(),
            host_ip,
            service_host: now.service_host,
            pod_ip: None,
            start_time: now.time.to_owned(),
            began: now.at,
            stage: Stage::Creating,
            host_ports: HostPort::of(pod),
            containers: containers(pod),
            ephemeral: Vec::new(),
            ending: None,
            stopping: None,
            is_killed: false,
            timers: BTreeMap::new(),
            since: BTreeMap::new(),
            step: 0,
            complaints: Vec::new(),
            transitions: BTreeMap::new(),
            reported: None,
            sent: None,
            pending_events: Vec::new(),
            awaited: BTreeSet::new(),
            failed_mounts: BTreeSet::new(),
        };
        if run.behaviour.outcome != Outcome::NeverStarts {
            run.set(Timer::Start, run.behaviour.start_delay, now);
        }
        run.plan_deadline(pod);
        run
    }

    /// Returns all containers, the ephemeral ones last.
    pub(super) fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().chain(&self.ephemeral)
    }

    /// Returns the time of the next step.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timers.values().min().copied()
    }

    /// Returns the time of the next step after now.
    pub(super) fn next_due_after(&self, now: Instant) -> Option<Instant> {
        self.timers
            .values()
            .filter(|due| **due > now)
            .min()
            .copied()
    }

    /// Reports whether the start delay has passed.
    pub(super) fn is_starting(&self, at: Instant) -> bool {
        self.timers.get(&Timer::Start).is_some_and(|due| *due <= at)
    }

    pub(super) fn set(&mut self, timer: Timer, delay: Delay, now: Now<'_>) {
        let time = self.draw(delay, "once", 0, now);
        self.plan(timer, time, now);
    }

    /// Sets a timer whose delay may change before it fires.
    pub(super) fn plan(&mut self, timer: Timer, time: Duration, now: Now<'_>) {
        self.since.insert(timer, now.at);
        self.timers.insert(timer, later(now.at, time));
    }

    pub(super) fn draw(&self, delay: Delay, what: &str, nth: u32, now: Now<'_>) -> Duration {
        now.rng.draw(delay, &self.draws, what, nth)
    }

    /// Reports new errors in the pod's annotations.
    pub(super) fn complain(&mut self, complaints: Vec<String>) {
        for complaint in &complaints {
            if !self.complaints.contains(complaint) {
                let (namespace, pod) = (&*self.key.namespace, &*self.key.name);
                tracing::warn!(namespace, pod, "{complaint}");
                self.tell(true, "InvalidAnnotation", complaint.clone(), None);
            }
        }
        self.complaints = complaints;
    }

    pub(super) fn tell(
        &mut self,
        warning: bool,
        reason: &'static str,
        message: String,
        container: Option<usize>,
    ) {
        let field_path = container.map(|i| {
            let container = &self.containers[i];
            let list = match container.role {
                Role::Main => "containers",
                Role::Init | Role::Sidecar => "initContainers",
                Role::Ephemeral => "ephemeralContainers",
            };
            format!("spec.{list}{{{}}}", container.name)
        });
        self.pending_events.push(PendingEvent {
            warning,
            reason,
            message,
            field_path,
        });
    }

    /// Reports a running container as unready.
    pub(super) fn report_unready(&mut self, i: usize) {
        let message = "Readiness probe failed: HTTP probe failed with statuscode: 500";
        self.tell(true, "Unhealthy", message.to_owned(), Some(i));
    }

    /// Reports that the node has a container's image.
    pub(super) fn tell_pulled(&mut self, i: usize) {
        let container = &self.containers[i];
        let image = container.image.clone();
        let pulled = if container.failed_pulls == 0 {
            format!(
                "Container image {image:?} already present on machine and can be accessed by the \
                 pod"
            )
        } else {
            self.tell(
                false,
                "Pulling",
                format!("Pulling image {image:?}"),
                Some(i),
            );
            format!(
                "Successfully pulled image {image:?} in 1s (1s including waiting). Image size: \
                 8388608 bytes."
            )
        };
        self.tell(false, "Pulled", pulled, Some(i));
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

    /// Ends the logs of a pod that its node has dropped, and with them its processes.
    pub(super) fn end_logs(&self, now: Timestamp) {
        for log in self.all_containers().filter_map(|it| it.log.as_ref()) {
            log.end(now);
        }
    }
}

/// Reports whether a pod on the same node uses a host port that this one needs.
pub(super) fn lacks_port(runs: &BTreeMap<Box<str>, PodRun>, uid: &str) -> bool {
    let Some(wanted) = runs.get(uid).filter(|run| !run.host_ports.is_empty()) else {
        return false;
    };
    let conflicts = |port: &HostPort| wanted.host_ports.iter().any(|it| it.conflicts(port));
    runs.values().any(|other| {
        let is_there = matches!(other.stage, Stage::Running | Stage::Stopping);
        *other.uid != *uid
            && other.node == wanted.node
            && is_there
            && other.host_ports.iter().any(conflicts)
    })
}

fn containers(pod: &Value) -> Vec<Container> {
    let specs = |pointer: &str| {
        let list = pod.pointer(pointer).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let init = specs("/spec/initContainers");
    let waits_for = if init.is_empty() {
        "ContainerCreating"
    } else {
        "PodInitializing"
    };
    let role = |spec: &Value| {
        if spec.get("restartPolicy") == Some(&json!("Always")) {
            Role::Sidecar
        } else {
            Role::Init
        }
    };
    let init = init
        .iter()
        .map(|spec| Container::new(spec, role(spec), waits_for));
    let main = specs("/spec/containers");
    let main = main
        .iter()
        .map(|spec| Container::new(spec, Role::Main, waits_for));
    init.chain(main).collect()
}
