//! The real controller with its informers and its event recorder, over the API.

use std::sync::Arc;
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderValue, Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::{Clock as _, TokioClock};
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::BroadcastRecorder;
use statefulset_client::rest::RestClient;
use statefulset_controller::{
    CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, ControllerConfig, HasSynced, StatefulSetController,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service, ServiceExt as _};

use super::stage::Stage;

/// The name by which the recorded server knew the controller.
const AGENT: &str = "kube-controller-manager";

/// The seed of the controller's random parts.
const SEED: u64 = 7;

/// The control plane's clock, as the controller takes it.
struct SharedClock(TokioClock);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// How long an answer is on its way, so that watches tell of a write before the next one is sent, as
/// they do on a network.
const LATENCY: Duration = Duration::from_millis(2);

/// A client whose answers take their time.
fn with_latency(
    client: kube::Client,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send + 'static>
+ Clone
+ Send
+ Sync
+ 'static {
    tower::service_fn(move |request| {
        let client = client.clone();
        async move {
            let answer = client.send(request).await;
            tokio::time::sleep(LATENCY).await;
            answer.map_err(BoxError::from)
        }
    })
}

/// The controller while it runs.
pub(super) struct Program {
    tasks: JoinSet<()>,
    cancelled: CancellationToken,
    has_synced: HasSynced,
}

impl Program {
    /// Starts the controller.
    pub(super) fn start(stage: &Stage) -> Self {
        let account = Identity::service_account("kube-system", "statefulset-controller");
        let service = stage.plane().service_as(account);
        let service = service.map_request(|mut request: Request<Body>| {
            let agent = HeaderValue::from_static(AGENT);
            request.headers_mut().insert(USER_AGENT, agent);
            request
        });
        let client = kube::Client::new(service, "default");
        let client = RestClient::from_service(with_latency(client));
        let clock: Arc<dyn Clock> = Arc::new(SharedClock(stage.clock().clone()));
        let (recorder, sink) = BroadcastRecorder::new("statefulset-controller", Arc::clone(&clock));
        let cancelled = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(sink.run(client.clone(), SEED, cancelled.clone()));
        let config = ControllerConfig {
            informer_client: client.clone(),
            client,
            recorder: Arc::new(recorder),
            clock,
            feature_gates: FeatureGates {
                max_unavailable_stateful_set: true,
                ..FeatureGates::default()
            },
            concurrent_syncs: CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT,
            resync_period: None,
            seed: SEED,
        };
        let controller = StatefulSetController::new(config);
        let has_synced = controller.has_synced();
        tasks.spawn(controller.run(cancelled.clone()));
        Self {
            tasks,
            cancelled,
            has_synced,
        }
    }

    /// Whether the caches are filled.
    pub(super) fn has_synced(&self) -> bool {
        self.has_synced.get()
    }

    /// Whether nothing of it has ended.
    pub(super) fn is_alive(&mut self) -> bool {
        self.tasks.try_join_next().is_none()
    }

    /// Stops it.
    ///
    /// # Errors
    ///
    /// It panics.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.cancelled.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended?;
        }
        Ok(())
    }
}

/// Runs the controller for a while, then stops it.
///
/// # Errors
///
/// It panics.
pub(super) async fn run(stage: &Stage, lasts: Duration) -> anyhow::Result<()> {
    let program = Program::start(stage);
    tokio::time::sleep(lasts).await;
    program.stop().await
}
