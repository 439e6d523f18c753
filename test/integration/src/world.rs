//! A cluster and the controller, for upstream's tests.

use std::sync::Arc;

use jiff::Timestamp;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::ActorsConfig;
use kube_test_control_plane::clock::{Clock as PlaneClock, TokioClock};
use serde_json::{Value, json};
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::NoopRecorder;
use statefulset_client::resource::Resource;
use statefulset_client::rest::RestClient;
use statefulset_controller::{
    CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, ControllerConfig, StatefulSetController,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::space::Space;

/// The moment at which embedded clusters begin.
const BEGIN: &str = "2026-03-01T12:00:00Z";
/// Namespaces.
const NAMESPACES: Resource = Resource {
    group: "",
    version: "v1",
    plural: "namespaces",
    kind: "Namespace",
};

/// A cluster in which the test acts.
pub struct World {
    plane: TestControlPlane,
    clock: Arc<dyn Clock>,
    gates: FeatureGates,
    controllers: JoinSet<()>,
}

/// The control plane's clock, as the controller takes it.
struct SharedClock(TokioClock);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test's harness panics where the test fails"
)]
impl World {
    /// An API server and nothing else.
    pub async fn api_server() -> Self {
        Self::start(ActorsConfig::default(), FeatureGates::default()).await
    }

    /// An API server and the controller, and nothing that runs pods.
    pub async fn with_controller() -> Self {
        let mut world = Self::api_server().await;
        world.start_controller(RestClient::new(world.client()));
        world
    }

    /// A cluster whose nodes run pods, and the controller.
    pub async fn with_nodes(actors: ActorsConfig, gates: FeatureGates) -> Self {
        let mut world = Self::start(actors, gates).await;
        world.start_controller(RestClient::new(world.client()));
        world
    }

    async fn start(actors: ActorsConfig, gates: FeatureGates) -> Self {
        let clock = TokioClock::starting_at(BEGIN.parse().expect("a constant time parses"));
        let plane = TestControlPlane::builder()
            .actors(actors)
            .clock(Arc::new(clock.clone()))
            .start()
            .await;
        Self {
            plane,
            clock: Arc::new(SharedClock(clock)),
            gates,
            controllers: JoinSet::new(),
        }
    }

    /// Starts a controller that writes through this client.
    pub fn start_controller(&mut self, client: RestClient) {
        let controller = StatefulSetController::new(ControllerConfig {
            informer_client: RestClient::new(self.client()),
            client,
            recorder: Arc::new(NoopRecorder),
            clock: Arc::clone(&self.clock),
            feature_gates: self.gates,
            concurrent_syncs: CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT,
            resync_period: None,
            seed: 7,
        });
        // It ends with the test.
        self.controllers
            .spawn(controller.run(CancellationToken::new()));
    }

    /// A client with every right.
    pub fn client(&self) -> kube::Client {
        self.plane.client()
    }

    /// The embedded control plane.
    pub fn plane(&self) -> &TestControlPlane {
        &self.plane
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Creates a namespace.
    pub async fn namespace(&self, name: &str) -> Space {
        let nowhere = Space::new(self.client(), "");
        let namespace: Value = json!({"metadata": {"name": name}});
        nowhere.create(&NAMESPACES, &namespace).await;
        Space::new(self.client(), name)
    }
}
