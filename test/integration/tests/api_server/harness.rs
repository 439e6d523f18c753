//! Harness: a cluster, a controller with only the default role, and its log.

use std::io::{Error as IoError, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use integration::manifests;
use kube::client::Body;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{ActorsConfig, KubeletConfig, PodBehaviour};
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::faults::Faults;
use kube_test_control_plane::route::Verb;
use serde_json::Value;
use statefulset_client::config::{ClientOptions, layered};
use statefulset_client::fake::CapturedLog;
use statefulset_client::resource::{Resource, STATEFUL_SETS};
use statefulset_client::rest::RestClient;
use statefulset_client::rest::api_health::ApiHealthLog;
use statefulset_controller::StatefulSetController;
use tokio::task::JoinSet;
use tower::{BoxError, service_fn};
use tracing::Level;

/// Cluster roles.
pub(crate) const CLUSTER_ROLES: Resource = Resource {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    plural: "clusterroles",
    kind: "ClusterRole",
};

/// Duration of each pod stage: start, readiness and stop.
const STEP: Duration = Duration::from_secs(3);
/// Time limit for any wait, in the test's time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Log lines about a set's progress, as opposed to the server.
const EXPECTED_LINES: [&str; 4] = [
    "INFO Event occurred",
    "INFO bringing the set to its desired state",
    "INFO set is in its desired state",
    "INFO ready: caches are filled",
];

/// A cluster with a controller.
pub(crate) struct Fixture {
    pub(crate) plane: TestControlPlane,
    pub(crate) admin: RestClient,
    log: CapturedLog,
    _tasks: JoinSet<()>,
}

impl Fixture {
    /// Starts a cluster, and the controller with the layers and the role of the program.
    pub(crate) async fn start() -> Self {
        let log = CapturedLog::at(Level::INFO);
        let pods = PodBehaviour::with_delays(STEP);
        let actors = ActorsConfig::all().kubelet(KubeletConfig::new(pods));
        let plane = TestControlPlane::builder().actors(actors).start().await;
        let state = Arc::new(ApiHealthLog::default());
        let client = || {
            let identity = Identity::service_account("kube-system", "statefulset-controller");
            let client = plane.client_as(identity);
            let service = service_fn(move |request: Request<Body>| {
                let client = client.clone();
                async move {
                    let sent = client.send(request).await;
                    sent.map_err(|_| BoxError::from(IoError::from(ErrorKind::ConnectionReset)))
                }
            });
            let options = ClientOptions::default().api_health(Arc::clone(&state));
            layered(service, &options)
        };
        let controller = StatefulSetController::builder_with_clients(client(), client())
            .resync_period(None)
            .seed(7)
            .build()
            .unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { controller.run(std::future::pending()).await.unwrap() });
        Self {
            admin: RestClient::new(plane.client()),
            plane,
            log,
            _tasks: tasks,
        }
    }

    pub(crate) fn faults(&self) -> &Faults {
        self.plane.server().faults()
    }

    /// Creates the set of the tests.
    pub(crate) async fn create(&self, replicas: u32) {
        let set = manifests::web(replicas).to_string();
        let created = self.admin.create(&STATEFUL_SETS, "default", set).await;
        created.unwrap();
    }

    pub(crate) async fn set(&self) -> Value {
        let text = self.admin.get(&STATEFUL_SETS, "default", "web").await;
        serde_json::from_str(&text.unwrap()).unwrap()
    }

    /// Waits until the set has this many available pods of the newest revision.
    pub(crate) async fn complete(&self, replicas: u32) {
        let done = async {
            loop {
                let set = self.set().await;
                let status = &set["status"];
                let counters = [
                    "replicas",
                    "availableReplicas",
                    "updatedReplicas",
                    "currentReplicas",
                ];
                if counters.iter().all(|counter| status[counter] == replicas)
                    && status["observedGeneration"] == set["metadata"]["generation"]
                {
                    return;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, done).await.is_ok();
        assert!(
            in_time,
            "not complete: {}\n{:#?}",
            self.set().await,
            self.log.lines()
        );
    }

    /// Names of the pods that clients created or deleted, in order; writes of the control plane's
    /// own actors don't count.
    pub(crate) fn pod_writes(&self, verb: Verb) -> Vec<String> {
        let audit = self.plane.server().audit();
        let entries = audit.matching(|entry| {
            entry.verb == verb
                && entry.resource == "pods"
                && entry.subresource.is_empty()
                && (200..300).contains(&entry.code)
                && !entry.user_agent.starts_with("test-control-plane/")
        });
        entries.into_iter().map(|entry| entry.name).collect()
    }

    /// Log lines about the server since the last call.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        let mut lines = self.log.take();
        lines.retain(|line| {
            !EXPECTED_LINES
                .iter()
                .any(|expected| line.starts_with(expected))
        });
        lines
    }
}

/// Checks the number of lines, and that each starts with its prefix.
#[track_caller]
pub(crate) fn assert_begin(lines: &[String], beginnings: &[&str]) {
    let fits = lines.len() == beginnings.len()
        && lines
            .iter()
            .zip(beginnings)
            .all(|(line, begin)| line.starts_with(begin));
    assert!(fits, "{lines:#?}\nare not\n{beginnings:#?}");
}
