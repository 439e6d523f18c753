//! The real controller with its informers and its event recorder, over the API.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use http::header::USER_AGENT;
use http::{HeaderValue, Request, Response};
use kube::client::Body;
use kube_test_control_plane::auth::Identity;
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::rest::RestClient;
use statefulset_controller::metrics::{ControllerMetrics, SetMetrics};
use statefulset_controller::{HasSynced, StatefulSetController};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service, ServiceExt as _};

use super::stage::Stage;

/// Name of the controller at the recorded server.
const AGENT: &str = "kube-controller-manager";

/// Seed of the controller's random delays and names.
const SEED: u64 = 7;

/// Latency of a response, so that watches report a write before the next request, as on a network.
const LATENCY: Duration = Duration::from_millis(2);

/// Counts panicked syncs: each only becomes its set's error, so nothing else reveals it.
#[derive(Default)]
struct SyncPanics(AtomicUsize);

impl SetMetrics for SyncPanics {
    fn sync_panicked(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A client with delayed responses.
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

/// The running controller.
pub(super) struct Program {
    tasks: JoinSet<()>,
    cancelled: CancellationToken,
    has_synced: HasSynced,
    panics: Arc<SyncPanics>,
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
        Self::over(stage, RestClient::from_service(with_latency(client)))
    }

    /// Starts the controller with a client of the stage.
    fn over(stage: &Stage, client: RestClient) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(stage.clock().clone());
        let feature_gates = FeatureGates::default().max_unavailable_stateful_set(true);
        let panics = Arc::new(SyncPanics::default());
        let metrics = ControllerMetrics::default().sets(Arc::clone(&panics) as Arc<dyn SetMetrics>);
        let controller = StatefulSetController::builder_with_clients(client.clone(), client)
            .clock(clock)
            .feature_gates(feature_gates)
            .metrics(metrics)
            .resync_period(None)
            .seed(SEED)
            .build()
            .expect("no election is configured");
        let has_synced = controller.has_synced();
        let cancelled = CancellationToken::new();
        let shutdown = cancelled.clone().cancelled_owned();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let ended = controller.run(shutdown).await;
            ended.unwrap_or_else(|error| panic!("{error}"));
        });
        Self {
            tasks,
            cancelled,
            has_synced,
            panics,
        }
    }

    /// Returns true if the caches are filled.
    pub(super) fn has_synced(&self) -> bool {
        self.has_synced.get()
    }

    /// Returns true if all its tasks are running.
    pub(super) fn is_alive(&mut self) -> bool {
        self.tasks.try_join_next().is_none()
    }

    /// Number of panicked syncs.
    pub(super) fn panics(&self) -> usize {
        self.panics.0.load(Ordering::Relaxed)
    }

    /// Faults that are independent of the case.
    pub(super) fn faults(&mut self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.has_synced() {
            faults.push("the caches aren't filled".to_owned());
        }
        if !self.is_alive() {
            faults.push("the program has ended".to_owned());
        }
        if self.panics() > 0 {
            faults.push(format!("panicked: {} syncs", self.panics()));
        }
        faults
    }

    /// Stops the controller.
    ///
    /// # Errors
    ///
    /// It panicked.
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
/// It panicked, or one of its syncs did.
pub(super) async fn run(stage: &Stage, lasts: Duration) -> anyhow::Result<()> {
    let program = Program::start(stage);
    tokio::time::sleep(lasts).await;
    ensure!(
        program.panics() == 0,
        "panicked: {} syncs",
        program.panics()
    );
    program.stop().await
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn panicked_sync_is_a_fault() {
        let stage = Stage::with_namespace("n").await.unwrap();
        let mut quiet = Program::start(&stage);
        let client = stage.plane().client();
        let service = tower::service_fn(move |request: Request<Body>| {
            assert!(
                request.method() != Method::POST || !request.uri().path().ends_with("/pods"),
                "panics on purpose"
            );
            let client = client.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(quiet.faults(), [""; 0]);
        quiet.stop().await.unwrap();

        let mut program = Program::over(&stage, RestClient::from_service(service));
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
            "spec": {
                "serviceName": "s",
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        });
        let path = "/apis/apps/v1/namespaces/n/statefulsets";
        stage.write("POST", path, &set).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let faults = program.faults();
        assert!(
            matches!(&*faults, [fault] if fault.starts_with("panicked: ")),
            "{faults:?}"
        );
        program.stop().await.unwrap();
        stage.end().await;
    }
}
