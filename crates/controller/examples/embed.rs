//! A controller manager of one's own, with the StatefulSet controller in it:
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

use anyhow::Context as _;
use statefulset_client::clock::{Clock, SystemClock};
use statefulset_client::config::{self, ClientOptions, Source};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::BroadcastRecorder;
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
        master: None,
    })
    .await?;

    // Each client has its own budget of requests: lists and watches don't hold up writes.
    let options = ClientOptions {
        user_agent: "embed/0.1".to_owned(),
        ..ClientOptions::default()
    };
    let informer_client = config::client(&config, &options)?;
    let client = config::client(&config, &options)?;
    config::check(&informer_client, &config.cluster_url).await?;

    // The library reads no clock and no random source by itself; these are handed in.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let seed = RandomState::new().hash_one("any seed that differs between processes will do");

    // Events go into a queue; the sink sends them in the background.
    let (recorder, sink) = BroadcastRecorder::new("statefulset-controller", Arc::clone(&clock));
    let stop_events = CancellationToken::new();
    let mut events = JoinSet::new();
    events.spawn(sink.run(client.clone(), seed, stop_events.clone()));

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
    // A manager with a lease cancels it when the lease is lost.
    let stop = CancellationToken::new();
    let mut controllers = JoinSet::new();
    controllers.spawn(controller.run(stop.clone()));
    tokio::signal::ctrl_c().await.context("listen for ctrl-c")?;
    stop.cancel();
    while controllers.join_next().await.is_some() {}

    // The recorder went with the controller, so the sink ends when it has sent what waits.
    if tokio::time::timeout(Duration::from_secs(3), events.join_next())
        .await
        .is_err()
    {
        stop_events.cancel();
    }
    Ok(())
}
