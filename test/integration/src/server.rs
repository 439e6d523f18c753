//! API server of the tests: the embedded one in paused time, or a real one in real time, selected
//! by the environment.

use std::sync::Arc;

use kube_test_control_plane::ServerGates;
use kube_test_control_plane::UnknownFields;
use kube_test_control_plane::actors::ActorsConfig;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::TokioClock;
use kube_test_control_plane::cluster::{Backend, TestCluster};
use statefulset_client::clock::{Clock, SystemClock};

use crate::turn::Turn;

/// Start time of embedded clusters.
const BEGIN: &str = "2026-03-01T12:00:00Z";

/// Client with the controller's permissions in a cluster: those of the default role
/// `system:controller:statefulset-controller`, which every API server binds to this account.
///
/// # Panics
///
/// Panics if the account can't be impersonated.
pub fn controller_client(cluster: &TestCluster) -> kube::Client {
    let account = Identity::service_account("kube-system", "statefulset-controller");
    let client = cluster.client_as(&account);
    client.unwrap_or_else(|error| panic!("{error}"))
}

/// Starts the API server that the environment selects, with these actors and this policy for
/// unknown fields. Also returns its clock, and the test's turn in a shared cluster, which must be
/// dropped last. With a real server, the test's time runs in real time from here on.
///
/// # Panics
///
/// Panics if the server can't be started; there is no fallback.
pub async fn start(
    actors: ActorsConfig,
    unknown_fields: UnknownFields,
) -> (TestCluster, Arc<dyn Clock>, Option<Turn>) {
    let backend = Backend::from_env().unwrap_or_else(|error| panic!("{error}"));
    let is_embedded = backend.is_embedded();
    if !is_embedded {
        tokio::time::resume();
    }
    let turn = match backend {
        Backend::Existing => Some(Turn::take().await),
        Backend::Embedded | Backend::Binaries(_) => None,
    };
    let clock = TokioClock::starting_at(BEGIN.parse().expect("a constant time parses"));
    let plane_clock = Arc::new(clock.clone());
    let cluster = TestCluster::builder()
        .actors(actors)
        .embedded(|plane| {
            let gates = ServerGates::default()
                .max_unavailable_stateful_set(true)
                // Only the embedded server has this gate of 1.37.
                .stateful_set_recreate_strategy(true);
            let plane = plane.clock(plane_clock).unknown_fields(unknown_fields);
            plane.feature_gates(gates)
        })
        // Without the gate the server drops the field, so tests couldn't observe its effect.
        .kube_apiserver_flag("--feature-gates=MaxUnavailableStatefulSet=true");
    let cluster = Box::pin(cluster.start_on(backend))
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let clock: Arc<dyn Clock> = if is_embedded {
        Arc::new(clock)
    } else {
        Arc::new(SystemClock)
    };
    (cluster, clock, turn)
}
