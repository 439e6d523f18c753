//! Test clusters: a control plane and a controller.

use std::sync::Arc;
use std::time::Duration;

use kube_test_control_plane::actors::{ActorsConfig, KubeletConfig, PodBehaviour};
use kube_test_control_plane::audit::AuditEntry;
use kube_test_control_plane::cluster::TestCluster;
use kube_test_control_plane::{TestControlPlane, UnknownFields};
use serde_json::Value;
use statefulset_client::clock::Clock;
use statefulset_client::error::Error;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::NoopRecorder;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, LEASES, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};
use statefulset_client::rest::{ListOptions, PatchType, RestClient};
use statefulset_controller::{Builder, StatefulSetController};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::server;
use crate::turn::Turn;

/// Namespace of all objects.
const NAMESPACE: &str = "default";
/// Time without writes after which a cluster counts as settled: longer than any kubelet delay in
/// these tests, and than the controller's retries after a few failures.
const QUIET: Duration = Duration::from_secs(30);
/// Number of busy periods after which a test gives up.
const BUSY_MAX: usize = 400;

/// Seed of the controller's random delays and names.
const SEED: u64 = 7;

/// A control plane with a kubelet, a volume binder and a garbage collector, and the controller.
pub struct NodeCluster {
    server: TestCluster,
    client: RestClient,
    clock: Arc<dyn Clock>,
    controller: Option<(CancellationToken, JoinSet<()>)>,
    _turn: Option<Turn>,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test harness panics on failures"
)]
impl NodeCluster {
    /// Starts a control plane with this pod behaviour, and the controller.
    pub async fn start(pods: PodBehaviour) -> Self {
        let mut cluster = Self::start_without_controller(pods).await;
        cluster.start_controller();
        cluster
    }

    /// Like [`NodeCluster::start`], with a server newer than v1.36.2, which stores fields unknown
    /// to this version.
    pub async fn start_newer(pods: PodBehaviour) -> Self {
        let mut cluster = Self::start_server(pods, UnknownFields::Keep).await;
        cluster.start_controller();
        cluster
    }

    /// Starts a control plane with this pod behaviour.
    pub async fn start_without_controller(pods: PodBehaviour) -> Self {
        Self::start_server(pods, UnknownFields::Prune).await
    }

    async fn start_server(pods: PodBehaviour, unknown_fields: UnknownFields) -> Self {
        let actors = ActorsConfig::all().kubelet(KubeletConfig::new(pods));
        let (server, clock, turn) = server::start(actors, unknown_fields).await;
        let client = RestClient::new(server.client());
        Self {
            server,
            client,
            clock,
            controller: None,
            _turn: turn,
        }
    }

    /// Starts a new controller process with only the default role. Its events are
    /// discarded.
    pub fn start_controller(&mut self) {
        let builder = self.controller_builder();
        self.start_controller_built_by(builder.recorder(Arc::new(NoopRecorder)));
    }

    /// Like [`NodeCluster::start_controller`], with these feature gates.
    pub fn start_controller_with(&mut self, gates: FeatureGates) {
        let builder = self.controller_builder().feature_gates(gates);
        self.start_controller_built_by(builder.recorder(Arc::new(NoopRecorder)));
    }

    /// Starts the same controller with the program's event recorder, which sends events to the
    /// server.
    pub fn start_recording_controller(&mut self) {
        self.start_controller_built_by(self.controller_builder());
    }

    fn controller_builder(&self) -> Builder {
        let client = RestClient::new(self.controller_client());
        StatefulSetController::builder_with_clients(client.clone(), client)
            .clock(Arc::clone(&self.clock))
            .resync_period(None)
            .seed(SEED)
    }

    fn start_controller_built_by(&mut self, builder: Builder) {
        assert!(self.controller.is_none(), "a controller runs already");
        let controller = builder.build().expect("no election is configured");
        let (cancelled, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let shutdown = cancelled.clone().cancelled_owned();
        tasks.spawn(async move {
            let ended = controller.run(shutdown).await;
            ended.expect("the controller ends at the shutdown");
        });
        self.controller = Some((cancelled, tasks));
    }

    /// Drops the controller between two of its steps, without a graceful stop.
    pub async fn kill_controller(&mut self) {
        if let Some((_, mut tasks)) = self.controller.take() {
            tasks.shutdown().await;
        }
    }

    /// Stops the controller gracefully, and waits for its end.
    pub async fn stop_controller(&mut self) {
        if let Some((cancelled, mut tasks)) = self.controller.take() {
            cancelled.cancel();
            while tasks.join_next().await.is_some() {}
        }
    }

    /// The embedded control plane, for tests of features that a real one lacks.
    pub fn plane(&self) -> &TestControlPlane {
        let plane = self.server.embedded();
        plane.unwrap_or_else(|error| panic!("{error}"))
    }

    /// A client with the controller's permissions: see [`server::controller_client`].
    pub fn controller_client(&self) -> kube::Client {
        server::controller_client(&self.server)
    }

    /// Clock of the cluster and its controllers.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Reads a lease in the namespace of leader election.
    pub async fn lease(&self, name: &str) -> Value {
        let answer = self.client.get(&LEASES, "kube-system", name).await;
        parse(&answer.unwrap_or_else(|error| panic!("read lease {name}: {error}")))
    }

    /// Waits until nothing has been written for a while.
    pub async fn settle(&self) {
        for _ in 0..BUSY_MAX {
            self.plane().server().audit().clear();
            tokio::time::sleep(QUIET).await;
            if self.writes().is_empty() {
                return;
            }
        }
        panic!("the cluster is still busy: {:?}", self.write_summaries());
    }

    /// Successful writes since the audit log was last cleared.
    pub fn writes(&self) -> Vec<AuditEntry> {
        self.plane()
            .server()
            .audit()
            .matching(|entry| entry.is_write() && entry.code < 300)
    }

    /// One line per entry of [`NodeCluster::writes`].
    pub fn write_summaries(&self) -> Vec<String> {
        self.writes().iter().map(AuditEntry::summary).collect()
    }

    /// Creates an object.
    pub async fn create(&self, resource: &Resource, object: &Value) -> Value {
        let answer = self
            .client
            .create(resource, NAMESPACE, object.to_string())
            .await;
        parse(&answer.unwrap_or_else(|error| panic!("create {}: {error}", resource.kind)))
    }

    /// Reads an object.
    pub async fn get(&self, resource: &Resource, name: &str) -> Option<Value> {
        match self.client.get(resource, NAMESPACE, name).await {
            Ok(text) => Some(parse(&text)),
            Err(error) if error.is_not_found() => None,
            Err(error) => panic!("read {} {name}: {error}", resource.kind),
        }
    }

    /// Applies a merge patch to an object.
    pub async fn patch(&self, resource: &Resource, name: &str, patch: &Value) -> Value {
        let body = patch.to_string();
        let answer = self
            .client
            .patch(resource, NAMESPACE, name, PatchType::Merge, body)
            .await;
        parse(&answer.unwrap_or_else(|error| panic!("patch {} {name}: {error}", resource.kind)))
    }

    /// Deletes an object with options.
    pub async fn delete(&self, resource: &Resource, name: &str, options: &Value) {
        let answer = self
            .client
            .delete(resource, NAMESPACE, name, options.to_string())
            .await;
        answer.unwrap_or_else(|error: Error| panic!("delete {} {name}: {error}", resource.kind));
    }

    /// All objects of a resource, sorted by name.
    pub async fn list(&self, resource: &Resource) -> Vec<Value> {
        let listed = self.try_list(resource).await;
        listed.unwrap_or_else(|error| panic!("list {}: {error}", resource.kind))
    }

    async fn try_list(&self, resource: &Resource) -> Result<Vec<Value>, Error> {
        let mut list = self.client.list(resource, &ListOptions::default()).await?;
        let mut objects = Vec::new();
        while let Some(item) = list.next().await? {
            objects.push(parse(item.text()));
        }
        list.finish()?;
        Ok(objects)
    }

    /// Status of a set.
    pub async fn status(&self, set: &str) -> Value {
        let set = self.get(&STATEFUL_SETS, set).await.expect("the set exists");
        set["status"].clone()
    }

    /// Names of all pods.
    pub async fn pod_names(&self) -> Vec<String> {
        names(&self.list(&PODS).await)
    }

    /// Names of all claims.
    pub async fn claim_names(&self) -> Vec<String> {
        names(&self.list(&PERSISTENT_VOLUME_CLAIMS).await)
    }

    /// Names and uids of all pods.
    pub async fn pod_uids(&self) -> Vec<(String, String)> {
        let uid = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap_or("").to_owned();
        let pods = self.list(&PODS).await;
        names(&pods).into_iter().zip(pods.iter().map(uid)).collect()
    }

    /// All revisions, oldest first.
    pub async fn revisions(&self) -> Vec<Value> {
        let mut revisions = self.list(&CONTROLLER_REVISIONS).await;
        revisions.sort_by_key(|revision| revision["revision"].as_i64());
        revisions
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("the server answers in JSON")
}

fn names(objects: &[Value]) -> Vec<String> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or("").to_owned();
    objects.iter().map(name).collect()
}
