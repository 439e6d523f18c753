//! A cluster with a leading controller and its shadow.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{ActorsConfig, KubeletConfig, PodBehaviour};
use kube_test_control_plane::audit::AuditEntry;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::{Clock as _, TokioClock};
use serde_json::{Value, json};
use statefulset_client::config::{ClientOptions, around};
use statefulset_client::rest::RestClient;
use statefulset_controller::StatefulSetController;
use statefulset_controller::metrics::Verdict;
use statefulset_controller::shadow::{Journal, Shadow, ShadowSettings};
use tokio::task::JoinSet;

const BEGIN: &str = "2026-03-01T12:00:00Z";
const STEP: Duration = Duration::from_secs(1);
const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
pub(crate) const SET: &str = "/apis/apps/v1/namespaces/default/statefulsets/web";
/// The shadow's user.
pub(crate) const SHADOW: &str = "shadow";

pub(crate) struct Stage {
    pub(crate) plane: TestControlPlane,
    clock: TokioClock,
    journal: Journal,
    tasks: JoinSet<()>,
}

impl Stage {
    /// Starts a cluster with a controller and its shadow.
    pub(crate) async fn start() -> Self {
        Self::led_by(RestClient::new).await
    }

    /// Starts a cluster whose controller sends through this client.
    pub(crate) async fn led_by(leader: impl FnOnce(kube::Client) -> RestClient) -> Self {
        let clock = TokioClock::starting_at(BEGIN.parse().unwrap());
        let pods = PodBehaviour::with_delays(STEP);
        let actors = ActorsConfig::all().kubelet(KubeletConfig::new(pods));
        let plane = TestControlPlane::builder()
            .clock(Arc::new(clock.clone()))
            .actors(actors)
            .start()
            .await;
        let account = Identity::service_account("kube-system", "statefulset-controller");
        let client = leader(plane.client_as(account));
        let controller = StatefulSetController::builder_with_clients(client.clone(), client)
            .clock(Arc::new(clock.clone()))
            .resync_period(None)
            .seed(7)
            .build()
            .unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { controller.run(std::future::pending()).await.unwrap() });
        let journal = Journal::default();
        let options = ClientOptions::default().qps(-1.0).read_only(true);
        let user = Identity::user(SHADOW).group("system:masters");
        let client = around(plane.client_as(user), &options);
        let settings = ShadowSettings::default()
            .concurrent_syncs(NonZeroUsize::MIN)
            .resync_period(None)
            .seed(8)
            .clock(Arc::new(clock.clone()));
        let shadow = Shadow::new(&client, settings, journal.clone());
        tasks.spawn(async move { shadow.run(std::future::pending()).await.unwrap() });
        let stage = Self {
            plane,
            clock,
            journal,
            tasks,
        };
        stage.pass(5).await;
        stage
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert_eq!(self.tasks.len(), 2);
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, kind: &str, body: &Value) -> Value {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body.to_string().into_bytes())
            .unwrap();
        let answer = self.plane.client().request_text(request).await;
        serde_json::from_str(&answer.unwrap()).unwrap()
    }

    pub(crate) async fn create(&self, set: &Value) {
        self.ask("POST", SETS, "application/json", set).await;
    }

    /// Applies a strategic merge patch to the spec of the set.
    pub(crate) async fn change(&self, spec: &Value) {
        let kind = "application/strategic-merge-patch+json";
        self.ask("PATCH", SET, kind, &json!({"spec": spec})).await;
    }

    pub(crate) async fn delete_pod(&self, name: &str) {
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        let kind = "application/json";
        self.ask("DELETE", &path, kind, &json!({})).await;
    }

    pub(crate) fn count(&self, verdict: Verdict) -> u64 {
        self.journal.count(verdict)
    }

    /// The journal's report, with the objects of the differences.
    pub(crate) fn report(&self) -> Value {
        let report = self.journal.report(self.clock.now(), true);
        serde_json::from_str(&report).unwrap()
    }

    /// The report without objects.
    pub(crate) fn summary(&self) -> String {
        self.journal.report(self.clock.now(), false)
    }

    /// Checks that the shadow has sent no write.
    pub(crate) fn assert_no_write(&self) {
        let is_write = |it: &AuditEntry| it.user == SHADOW && it.is_write();
        let writes = self.plane.server().audit().matching(is_write);
        assert!(writes.is_empty(), "{writes:?}");
    }
}

/// An image of the set.
pub(crate) fn image(image: &str) -> Value {
    json!({"template": {"spec": {"containers": [{"name": "app", "image": image}]}}})
}

/// A set with this many pods and one claim for each.
pub(crate) fn web(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }],
        },
    })
}
