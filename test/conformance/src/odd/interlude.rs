//! A run of the controller between two requests.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::{Clock as _, TokioClock};
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::BroadcastRecorder;
use statefulset_client::rest::RestClient;
use statefulset_controller::{
    CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, ControllerConfig, StatefulSetController,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::stage::Stage;

/// The seed of the controller's random parts.
const SEED: u64 = 7;

/// The control plane's clock, as the controller takes it.
struct SharedClock(TokioClock);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// Runs the real controller for a while, then stops it.
///
/// # Errors
///
/// It panics.
pub(super) async fn run(stage: &Stage, lasts: Duration) -> anyhow::Result<()> {
    let account = Identity::service_account("kube-system", "statefulset-controller");
    let client = RestClient::new(stage.plane().client_as(account));
    let clock: Arc<dyn Clock> = Arc::new(SharedClock(stage.clock().clone()));
    let (recorder, sink) = BroadcastRecorder::new("statefulset-controller", Arc::clone(&clock));
    let cancelled = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(sink.run(client.clone(), SEED, cancelled.clone()));
    let controller = StatefulSetController::new(ControllerConfig {
        informer_client: client.clone(),
        client,
        recorder: Arc::new(recorder),
        clock,
        feature_gates: FeatureGates::default(),
        concurrent_syncs: CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT,
        resync_period: None,
        seed: SEED,
    });
    tasks.spawn(controller.run(cancelled.clone()));
    tokio::time::sleep(lasts).await;
    cancelled.cancel();
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(())
}
