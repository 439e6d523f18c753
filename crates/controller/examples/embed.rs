//! A controller manager of one's own, with the StatefulSet controller in it, as one of several
//! that compete for a lease:
//!
//! ```sh
//! cargo run -p statefulset-controller --example embed -- path/to/kubeconfig
//! ```
//!
//! No other StatefulSet controller may run on the cluster meanwhile. The library logs through
//! `tracing`: install the subscriber of your choice to see it. It names no version feature of
//! k8s-openapi either: choose the one of your other controllers.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use statefulset_client::backoff::SeededJitter;
use statefulset_client::clock::{BootClock, Clock, SystemClock};
use statefulset_client::config::{self, ClientOptions, ProxyConfig, Source};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::leaderelection::{
    ElectorParts, Ended, LeaderElectionConfig, LeaderElector, LeaseLock, LeaseName,
    NoopLeaderElectionMetrics,
};
use statefulset_client::recorder::{BroadcastRecorder, NoopRecorder};
use statefulset_controller::{
    CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, ControllerConfig, StatefulSetController,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a kubeconfig the service account of the pod is used.
    let kubeconfig = std::env::args_os().nth(1).map(Into::into);
    let config = config::load(&Source {
        kubeconfig,
        proxy: ProxyConfig::from_environment(|name| std::env::var(name).ok()),
        ..Source::default()
    })
    .await?;
    let options = ClientOptions {
        user_agent: "embed/0.1".to_owned(),
        ..ClientOptions::default()
    };
    // Each client has its own budget of requests: lists and watches don't hold up writes, and the
    // lease is renewed whatever else is asked for.
    let informer_client = config::client(&config, &options)?;
    let lease_client = config::client(&config, &options)?;
    config::check(&informer_client, &config.cluster_url).await?;

    // The library reads no clock and no random source by itself; these are handed in.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let seed = RandomState::new().hash_one("any seed that differs between processes will do");

    let at = LeaseName {
        namespace: "default".to_owned(),
        name: "embed".to_owned(),
    };
    let identity = format!("embed_{seed:x}");
    let elector = LeaderElector::new(
        LeaderElectionConfig::default(),
        ElectorParts {
            // Events about the lease would be sent by a recorder of its own.
            lock: LeaseLock::new(lease_client, at, identity, Arc::new(NoopRecorder)),
            clock: Arc::clone(&clock),
            monotonic: Arc::new(BootClock),
            jitter: Arc::new(SeededJitter::new(seed)),
            metrics: Arc::new(NoopLeaderElectionMetrics),
        },
    )?;
    // Behind the fence no write begins once the lease is over.
    let fenced = ClientOptions {
        fence: Some(elector.fence()),
        ..options
    };
    let client = config::client(&config, &fenced)?;

    // Events go into a queue; the sink sends them in the background.
    let (recorder, sink) = BroadcastRecorder::new("statefulset-controller", Arc::clone(&clock));
    let mut events = JoinSet::new();
    events.spawn(sink.run(client.clone(), seed, CancellationToken::new()));

    let controller = StatefulSetController::new(ControllerConfig {
        informer_client,
        client,
        recorder: Arc::new(recorder),
        clock,
        feature_gates: FeatureGates::default(),
        concurrent_syncs: CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT,
        resync_period: Some(Duration::from_secs(12 * 3600)),
        seed,
    });

    // The controller runs until the token is cancelled, and then finishes the syncs in progress.
    let stop = CancellationToken::new();
    let interrupted = stop.clone();
    let mut signals = JoinSet::new();
    signals.spawn(async move {
        let waited = tokio::signal::ctrl_c().await.context("listen for ctrl-c");
        interrupted.cancel();
        waited
    });
    let work = async {
        controller.run(stop.clone()).await;
        // The recorder went with the controller, so the sink ends when it has sent what waits.
        let _ = tokio::time::timeout(Duration::from_secs(3), events.join_next()).await;
    };
    let ended = Box::pin(elector.run(&stop, work)).await;
    match ended {
        Ended::Lost(lost) => bail!("the lease is lost: {lost}"),
        Ended::NeverLed | Ended::Finished(()) => Ok(()),
    }
}
