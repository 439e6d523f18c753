//! Instances: the shipped controller, from its library entry.

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::clock::TokioClock;
use statefulset_client::config::ClientOptions;
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_client::leaderelection::{LeaderElectionConfig, LeaseName};
use statefulset_client::rest::MediaType;
use statefulset_controller::metrics::{ControllerMetrics, FenceMetrics, SetMetrics};
use statefulset_controller::{LeaderElection, StatefulSetController};
use statefulset_controller_util::consistency::{Caches, TrackedResource};
use statefulset_fence::NamespaceSelector;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::Process;
use crate::clock::SkewedClock;
use crate::network::{Network, Signal};
use crate::plan::{BUILT_IN_LEASE, LEASE, LEASE_NAMESPACE, Settings};
use crate::record::{PANICS, Recorder};
use crate::seed;

/// Reports the syncs of a process, and the falls of its fence, to the record.
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

impl FenceMetrics for SyncProbe {
    fn fell(&self, reason: &'static str) {
        self.recorder.fell(self.process, reason);
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
    let config = LeaderElectionConfig::default()
        .lease_duration(seconds(settings.lease.lease))
        .renew_deadline(seconds(settings.lease.renew))
        .retry_period(seconds(settings.lease.retry));
    let is_built_in = settings.is_built_in(process.instance);
    let lease = if is_built_in { BUILT_IN_LEASE } else { LEASE };
    let lease = LeaseName::new(LEASE_NAMESPACE, lease);
    let election = LeaderElection::new(lease, format!("controller-{process}"))
        .config(config)
        .monotonic(Arc::new(TokioClock::new()));
    let probe = Arc::new(SyncProbe { process, recorder });
    let metrics = ControllerMetrics::default()
        .sets(Arc::clone(&probe) as Arc<dyn SetMetrics>)
        .fence(probe);
    let seed = seed::derived(seed, &format!("controller {process}"));
    let media_type = if seed.is_multiple_of(2) {
        MediaType::Protobuf
    } else {
        MediaType::Json
    };
    let options = ClientOptions::default()
        .qps(settings.qps.into())
        .burst(settings.qps)
        .media_type(media_type);
    let client = kube::Client::new(network, "default");
    let mut builder = StatefulSetController::builder_with_kube_client(client)
        .client_options(options)
        .clock(Arc::new(clock))
        .feature_gates(gates(settings, process.instance))
        .concurrent_syncs(NonZeroUsize::new(settings.workers).unwrap_or(NonZeroUsize::MIN))
        .resync_period(settings.resync.map(seconds))
        .seed(seed)
        .metrics(metrics)
        .leader_election(election);
    if settings.fence.is_some() && !is_built_in {
        builder = builder.namespace_selector(NamespaceSelector::default());
    }
    let mut tasks = JoinSet::new();
    let controller = match settings.pages {
        None => builder.build(),
        Some(pages) => {
            builder = builder.page_size(pages);
            let informers = builder.make_informers();
            let mut informers = informers.unwrap_or_else(|error| panic!("{error}"));
            let controller = builder.build_with_informers(&mut informers);
            tasks.spawn(async move {
                // They end with the process.
                let _ = informers.run(CancellationToken::new()).await;
            });
            controller
        }
    };
    let controller = controller.unwrap_or_else(|error| panic!("{error}"));
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

/// Returns the feature gates of an instance.
fn gates(settings: &Settings, instance: usize) -> FeatureGates {
    let gates = FeatureGates::at(KubeVersion::v1(settings.minor(instance)))
        .max_unavailable_stateful_set(settings.max_unavailable)
        .stale_controller_consistency_stateful_set(settings.consistency);
    if settings.allows_opt_ins(instance) {
        gates.with_opt_ins()
    } else {
        gates
    }
}
