//! Clusters with the controller, for upstream's tests.

use std::sync::Arc;

use jiff::Timestamp;
use kube_test_control_plane::actors::{ActorsConfig, Pods};
use kube_test_control_plane::cluster::TestCluster;
use kube_test_control_plane::{TestControlPlane, UnknownFields};
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::rest::RestClient;
use statefulset_controller::StatefulSetController;
use tokio::task::JoinSet;

use crate::server;
use crate::space::Space;
use crate::turn::Turn;

/// Seed of the controller's random delays and names.
const SEED: u64 = 7;

/// A cluster whose pods the test controls.
pub struct World {
    server: TestCluster,
    clock: Arc<dyn Clock>,
    gates: FeatureGates,
    controllers: JoinSet<()>,
    _turn: Option<Turn>,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test harness panics on failures"
)]
impl World {
    /// Starts an API server only.
    pub async fn api_server() -> Self {
        Self::start(
            ActorsConfig::default(),
            FeatureGates::default(),
            UnknownFields::default(),
        )
        .await
    }

    /// Starts an API server newer than v1.36.2 only; it stores fields unknown to this version.
    pub async fn newer_api_server() -> Self {
        let gates = FeatureGates::default();
        Self::start(ActorsConfig::default(), gates, UnknownFields::Keep).await
    }

    /// Starts an API server and the controller; no node runs pods.
    pub async fn with_controller() -> Self {
        let mut world = Self::api_server().await;
        world.start_controller(RestClient::new(world.controller_client()));
        world
    }

    /// Starts an API server and a controller with these gates; no node runs pods.
    pub async fn with_gates(gates: FeatureGates) -> Self {
        let actors = ActorsConfig::default();
        let mut world = Self::start(actors, gates, UnknownFields::default()).await;
        world.start_controller(RestClient::new(world.controller_client()));
        world
    }

    /// Starts a cluster whose nodes run pods; no controller.
    pub async fn nodes(actors: ActorsConfig) -> Self {
        Self::start(actors, FeatureGates::default(), UnknownFields::default()).await
    }

    /// Starts a cluster whose nodes run pods, and the controller.
    pub async fn with_nodes(actors: ActorsConfig, gates: FeatureGates) -> Self {
        let mut world = Self::start(actors, gates, UnknownFields::default()).await;
        world.start_controller(RestClient::new(world.controller_client()));
        world
    }

    async fn start(
        actors: ActorsConfig,
        gates: FeatureGates,
        unknown_fields: UnknownFields,
    ) -> Self {
        let (server, clock, turn) = server::start(actors, unknown_fields).await;
        Self {
            server,
            clock,
            gates,
            controllers: JoinSet::new(),
            _turn: turn,
        }
    }

    /// Starts a controller that writes through this client.
    pub fn start_controller(&mut self, client: RestClient) {
        let informers = RestClient::new(self.controller_client());
        let controller = StatefulSetController::builder_with_clients(informers, client)
            .clock(Arc::clone(&self.clock))
            .feature_gates(self.gates)
            .resync_period(None)
            .seed(SEED)
            .build()
            .expect("no election is configured");
        // Ends with the test.
        self.controllers.spawn(async move {
            let ended = controller.run(std::future::pending()).await;
            ended.expect("the controller runs until the end");
        });
    }

    /// Client with all permissions.
    pub fn client(&self) -> kube::Client {
        self.server.client()
    }

    /// Client with the controller's permissions: see [`server::controller_client`].
    pub fn controller_client(&self) -> kube::Client {
        server::controller_client(&self.server)
    }

    /// The embedded control plane, for tests of features that a real one lacks.
    pub fn plane(&self) -> &TestControlPlane {
        let plane = self.server.embedded();
        plane.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Changes pods instead of the kubelet.
    pub fn pods(&self) -> Pods<'_> {
        let pods = self.server.pods();
        pods.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Creates a namespace whose name starts with `prefix`.
    pub async fn namespace(&self, prefix: &str) -> Space {
        let created = self.server.create_namespace(prefix).await;
        let name = created.unwrap_or_else(|error| panic!("{error}"));
        Space::new(self.client(), &name)
    }
}
