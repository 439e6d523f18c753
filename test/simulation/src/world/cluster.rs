//! The control plane of a run with the instances of the controller, and the faults at work in it.

use std::sync::Arc;

use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::faults::RuleId;
use kube_test_control_plane::store::LogEntry;
use rand::rngs::StdRng;
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::admission::Admission;
use crate::clock::SkewedClock;
use crate::network::Faults;
use crate::plan::{LEASE, LEASE_NAMESPACE, Settings};
use crate::record::Recorder;

/// An instance and its current process.
pub(super) struct Instance {
    pub(super) life: u32,
    pub(super) clock: SkewedClock,
    pub(super) tasks: JoinSet<()>,
    /// Start of the next process; none while one runs.
    pub(super) restart: Option<Instant>,
}

impl Instance {
    /// Kills the current process.
    pub(super) fn stop(&mut self) {
        // Dropped tasks stop at once, between two of their steps.
        self.tasks = JoinSet::new();
        self.life += 1;
    }
}

/// The end of a fault.
pub(super) enum End {
    /// Removes a rule of the control plane.
    Rule(RuleId),
    /// Connects a node again.
    HealNode(String),
    /// Allows new pods.
    AllowPods,
    /// Allows new pods of all images.
    AllowImages,
    /// Leaves new pods as they are.
    LeavePods,
    /// Removes the limit of pods.
    RemoveQuota,
    /// Corrects the clock of an instance.
    CorrectClock(usize),
    /// Ends an outage of the API server.
    RestoreServer,
    /// Ends a writer that competes with the controllers.
    Stop(AbortHandle),
    /// Makes the API server an older one again.
    OldDefaults,
}

/// The control plane and the instances.
pub(super) struct Cluster {
    pub(super) plane: TestControlPlane,
    pub(super) settings: Settings,
    /// Other writers of the sets' objects.
    pub(super) rivals: JoinSet<()>,
    pub(super) faults: Faults,
    pub(super) recorder: Recorder,
    pub(super) instances: Vec<Instance>,
    pub(super) random: StdRng,
    pub(super) admission: Arc<Admission>,
    /// Faults to end at a time.
    pub(super) ends: Vec<(Instant, End)>,
    pub(super) commits: Vec<LogEntry>,
    pub(super) collected: u64,
}

impl Cluster {
    /// Returns the instance that holds the lease.
    pub(super) fn leader(&self) -> Option<usize> {
        let lease = self.stored("leases", LEASE_NAMESPACE, LEASE)?;
        let holder = lease.pointer("/spec/holderIdentity")?.as_str()?;
        let (instance, _) = holder.strip_prefix("controller-")?.split_once('.')?;
        instance.parse().ok()
    }

    pub(super) fn stored(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = kube_test_control_plane::store::Key::of(storage, namespace, name);
        Some(self.plane.server().store().get(&key)?.value())
    }

    /// Takes the commits so far from the API server's log.
    pub(super) fn collect(&mut self) {
        let store = self.plane.server().store();
        // The log is longer than any run, and compaction collects first.
        if let Ok((until, entries)) = store.events_after(self.collected, usize::MAX) {
            self.commits.extend(entries);
            self.collected = until;
        }
    }
}
