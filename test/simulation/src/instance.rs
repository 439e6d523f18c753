//! Instances: the shipped controller, from its library entry.

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::clock::TokioClock;
use statefulset_client::config::ClientOptions;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::leaderelection::{LeaderElectionConfig, LeaseName};
use statefulset_controller::metrics::{ControllerMetrics, SetMetrics};
use statefulset_controller::{LeaderElection, StatefulSetController};
use statefulset_controller_util::consistency::{Caches, TrackedResource};
use tokio::task::JoinSet;

use crate::agent::Process;
use crate::clock::SkewedClock;
use crate::network::{Network, Signal};
use crate::plan::Settings;
use crate::record::{PANICS, Recorder};
use crate::seed;

/// The lease that the instances compete for.
pub const LEASE: &str = "statefulset-controller";

/// Namespace of the lease.
pub const LEASE_NAMESPACE: &str = "kube-system";

/// Reports the syncs of a process to the record.
struct SyncProbe {
    process: Process,
    recorder: Recorder,
}

impl SetMetrics for SyncProbe {
    fn sync_started(&self, set: &ObjectKey, caches: &Caches) {
        let key = (set.namespace().to_owned(), set.name().to_owned());
        self.recorder.sync_started(self.process, key, caches);
    }

    fn sync_panicked(&self) {
        let process = self.process;
        self.recorder
            .note(format!("process {process}: a sync{PANICS}"));
    }

    fn stale_sync_skipped(&self, _: TrackedResource) {
        self.recorder.postponed();
    }
}

/// Starts a process. Dropping the result kills it.
///
/// # Panics
///
/// Panics if the settings of the leader election are invalid.
pub fn start(network: Network, clock: SkewedClock, settings: &Settings, seed: u64) -> JoinSet<()> {
    let process = network.process;
    let signals = network.signals.clone();
    let recorder = network.recorder.clone();
    let seconds = Duration::from_secs;
    let mut election = LeaderElection::new(
        LeaseName {
            namespace: LEASE_NAMESPACE.to_owned(),
            name: LEASE.to_owned(),
        },
        format!("controller-{process}"),
    );
    election.config = LeaderElectionConfig {
        lease_duration: seconds(settings.lease.lease),
        renew_deadline: seconds(settings.lease.renew),
        retry_period: seconds(settings.lease.retry),
        ..LeaderElectionConfig::default()
    };
    election.monotonic = Arc::new(TokioClock::new());
    let metrics = ControllerMetrics {
        sets: Arc::new(SyncProbe { process, recorder }),
        ..ControllerMetrics::default()
    };
    let client = kube::Client::new(network, "default");
    let controller = StatefulSetController::builder(client)
        .client_options(ClientOptions {
            qps: settings.qps.into(),
            burst: settings.qps,
            ..ClientOptions::default()
        })
        .clock(Arc::new(clock))
        .feature_gates(FeatureGates {
            max_unavailable_stateful_set: settings.max_unavailable,
            stale_controller_consistency_stateful_set: settings.consistency,
            ..FeatureGates::default()
        })
        .concurrent_syncs(NonZeroUsize::new(settings.workers).unwrap_or(NonZeroUsize::MIN))
        .resync_period(settings.resync.map(seconds))
        .seed(seed::derived(seed, &format!("controller {process}")))
        .metrics(metrics)
        .leader_election(election)
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let run = AssertUnwindSafe(controller.run(std::future::pending()));
        let why = match run.catch_unwind().await {
            Ok(Ok(())) => "finished".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it{PANICS}"),
        };
        // The run that receives the signal outlives its processes.
        let _ = signals.send(Signal::Ended(process, why));
    });
    tasks
}
