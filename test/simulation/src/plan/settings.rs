//! The environment of a run.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

/// The lease that the instances compete for.
pub const LEASE: &str = "statefulset-controller";

/// The lease that the processes of the built-in controller compete for.
pub const BUILT_IN_LEASE: &str = "kube-controller-manager";

/// Namespace of both leases.
pub const LEASE_NAMESPACE: &str = "kube-system";

/// A time or duration in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl From<Millis> for Duration {
    fn from(millis: Millis) -> Self {
        Self::from_millis(millis.0)
    }
}

/// A random duration between two bounds, both included, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span(pub u64, pub u64);

impl Span {
    /// Draws a duration.
    pub fn draw(self, random: &mut StdRng) -> Duration {
        Duration::from_millis(random.random_range(self.0..=self.1.max(self.0)))
    }

    /// The longest duration.
    pub fn max(self) -> Duration {
        Duration::from_millis(self.1)
    }
}

/// Durations of the leader election, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaseTimes {
    /// Time after which rivals take the lease.
    pub lease: u64,
    /// Time after which a holder that can't renew stops.
    pub renew: u64,
    /// Time between two attempts.
    pub retry: u64,
}

/// The environment of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Number of controller instances that compete for the lease.
    pub instances: usize,
    /// Number of sets that an instance syncs in parallel.
    pub workers: usize,
    /// Durations of the leader election.
    pub lease: LeaseTimes,
    /// Time between two resyncs in seconds; none for a controller that only events wake.
    pub resync: Option<u64>,
    /// Latency of a request, and of its response.
    pub latency: Span,
    /// Lag of an instance's watches behind the API server.
    pub lag: Span,
    /// Interval of bookmarks in seconds.
    pub bookmarks: u64,
    /// True if rolling updates obey `maxUnavailable`.
    pub max_unavailable: bool,
    /// True if a sync waits until the caches show the instance's writes.
    #[serde(default = "usual_consistency")]
    pub consistency: bool,
    /// The minor versions that the instances emulate, one for each in turn; 1.36 if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<u32>,
    /// Size of the pages of lists, by informers that run before their process leads; none for
    /// informers that begin when it leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<u32>,
    /// Time from a pod's creation to its start.
    pub pod_start: Span,
    /// Time from a pod's start to its readiness.
    pub pod_ready: Span,
    /// Time that a pod needs to stop.
    pub pod_stop: Span,
    /// Delay of the garbage collector in milliseconds.
    pub collector_delay: Millis,
    /// Average requests per second of an instance; 0 for no limit.
    pub qps: u32,
    /// Time until a restarted instance runs again.
    pub restart: Span,
    /// The fence between the instances and a built-in controller; none if they are alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// The feature gates of the opt-ins; off if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opt_ins: Option<OptIns>,
}

/// The feature gates of the opt-ins in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OptIns {
    /// True if they are on, for each instance in turn. An instance without them stands for the
    /// built-in controller.
    pub gates: Vec<bool>,
    /// True if the instances may evict pods.
    pub may_evict: bool,
}

impl Default for OptIns {
    /// All instances have them.
    fn default() -> Self {
        Self {
            gates: vec![true],
            may_evict: true,
        }
    }
}

/// The fence of a run. The instances serve the namespace behind it, and further processes stand for
/// the built-in controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fence {
    /// Time after which an API server applies a change of the label, a policy or a binding. Each of
    /// the two API servers draws its own.
    pub lag: Span,
    /// Number of processes of the built-in controller, of which one leads. They come after the
    /// instances.
    pub built_in: usize,
}

/// Minor version of upstream.
const UPSTREAM: u32 = 36;

impl Settings {
    /// Returns the minor version that an instance emulates.
    pub fn minor(&self, instance: usize) -> u32 {
        let mut versions = self.versions.iter().copied().cycle();
        versions.nth(instance).unwrap_or(UPSTREAM)
    }

    /// Returns the number of processes: the instances, and those of the built-in controller.
    pub fn processes(&self) -> usize {
        self.instances + self.fence.map_or(0, |fence| fence.built_in)
    }

    /// Returns true for a process of the built-in controller.
    pub fn is_built_in(&self, process: usize) -> bool {
        self.fence.is_some() && process >= self.instances
    }

    /// Reports whether an instance lets sets opt in.
    pub fn allows_opt_ins(&self, instance: usize) -> bool {
        let gates = self.opt_ins.iter().flat_map(|it| &it.gates);
        gates.copied().cycle().nth(instance).unwrap_or_default()
    }
}

fn usual_consistency() -> bool {
    true
}

impl Default for Settings {
    /// One undisturbed instance with upstream's settings.
    fn default() -> Self {
        Self {
            instances: 1,
            workers: 5,
            lease: LeaseTimes {
                lease: 15,
                renew: 10,
                retry: 2,
            },
            resync: None,
            latency: Span(1, 5),
            lag: Span(0, 20),
            bookmarks: 60,
            max_unavailable: true,
            consistency: usual_consistency(),
            versions: Vec::new(),
            pages: None,
            pod_start: Span(200, 2_000),
            pod_ready: Span(500, 5_000),
            pod_stop: Span(100, 3_000),
            collector_delay: Millis(1_000),
            qps: 0,
            restart: Span(100, 5_000),
            fence: None,
            opt_ins: None,
        }
    }
}
