//! Which API server the tests run against: the embedded one in paused time, or a real one in real
//! time, as the environment chooses.

use std::sync::Arc;

use jiff::Timestamp;
use kube_test_control_plane::UnknownFields;
use kube_test_control_plane::actors::ActorsConfig;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::{Clock as PlaneClock, TokioClock};
use kube_test_control_plane::cluster::{Backend, TestCluster};
use kube_test_control_plane::config::FeatureGates as ServerGates;
use statefulset_client::clock::{Clock, SystemClock};

use crate::turn::Turn;

/// The moment at which embedded clusters begin.
const BEGIN: &str = "2026-03-01T12:00:00Z";

/// A client with the rights that the controller has in a cluster: those of the stock role
/// `system:controller:statefulset-controller`, which every API server gives to this account.
///
/// # Panics
///
/// The account can't be taken on.
pub fn controller_client(cluster: &TestCluster) -> kube::Client {
    let account = Identity::service_account("kube-system", "statefulset-controller");
    let client = cluster.client_as(&account);
    client.unwrap_or_else(|error| panic!("{error}"))
}

/// The control plane's clock, as the controller takes it.
struct SharedClock(TokioClock);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// Starts the API server that the environment chooses, with these actors and this policy for fields
/// that it doesn't know, the clock that it goes by, and the turn of a test in a cluster that it
/// shares with others: to be dropped last. Where it is a real one, the test's time runs on from
/// here.
///
/// # Panics
///
/// It can't be started; another one is not tried.
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
            let gates = ServerGates {
                max_unavailable_stateful_set: true,
            };
            let plane = plane.clock(plane_clock).unknown_fields(unknown_fields);
            plane.feature_gates(gates)
        })
        // Without it the member is dropped, and no test could say what the controller makes of it.
        .kube_apiserver_flag("--feature-gates=MaxUnavailableStatefulSet=true");
    let cluster = Box::pin(cluster.start_on(backend))
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let clock: Arc<dyn Clock> = if is_embedded {
        Arc::new(SharedClock(clock))
    } else {
        Arc::new(SystemClock)
    };
    (cluster, clock, turn)
}
