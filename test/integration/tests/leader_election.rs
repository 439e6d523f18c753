//! Tests of controller instances with leader election in one cluster: only one writes at a time.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, header};
use integration::{NodeCluster, manifests};
use kube::client::Body;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::PodBehaviour;
use kube_test_control_plane::audit::{AuditEntry, Settle};
use kube_test_control_plane::faults::{FaultAction, RequestMatcher};
use serde_json::json;
use statefulset_client::backoff::SeededJitter;
use statefulset_client::clock::TokioClock;
use statefulset_client::config::{ClientOptions, layered};
use statefulset_client::fence::Fence;
use statefulset_client::leaderelection::{
    ElectorParts, Ended, LeaderElectionConfig, LeaderElector, LeaseLock, LeaseName, Lost,
};
use statefulset_client::recorder::NoopRecorder;
use statefulset_client::resource::{LEASES, Resource, STATEFUL_SETS};
use statefulset_client::rest::RestClient;
use statefulset_controller::StatefulSetController;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, service_fn};

/// Time that pods take to start, and again to become ready.
const POD_DELAY: Duration = Duration::from_secs(2);

/// Namespace of the instances' account, their lease and its role.
const SYSTEM: &str = "kube-system";
/// Lease name of the shipped manifests.
const LEASE: &str = "statefulset-controller-manager";

const ROLES: Resource = Resource {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    plural: "roles",
    kind: "Role",
};
const ROLE_BINDINGS: Resource = Resource {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    plural: "rolebindings",
    kind: "RoleBinding",
};

/// Grants the instances' account its lease only, like the shipped manifests.
async fn grant_lease(plane: &TestControlPlane) {
    let group = LEASES.group;
    let role = json!({
        "metadata": {"name": LEASE},
        "rules": [
            {"apiGroups": [group], "resources": ["leases"], "verbs": ["create"]},
            {
                "apiGroups": [group], "resources": ["leases"], "resourceNames": [LEASE],
                "verbs": ["get", "update"],
            },
        ],
    });
    let binding = json!({
        "metadata": {"name": LEASE},
        "roleRef": {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": LEASE},
        "subjects": [{
            "kind": "ServiceAccount", "namespace": SYSTEM, "name": "statefulset-controller",
        }],
    });
    let admin = RestClient::new(plane.client());
    for (resource, object) in [(ROLES, role), (ROLE_BINDINGS, binding)] {
        let created = admin.create(&resource, SYSTEM, object.to_string()).await;
        created.expect("an administrator may grant rights");
    }
}

/// A cluster with its running instances.
struct ElectionCluster {
    cluster: NodeCluster,
    running: JoinSet<(&'static str, Ended<()>)>,
}

/// A participating instance.
struct Instance {
    stop: CancellationToken,
    task: AbortHandle,
}

impl ElectionCluster {
    async fn start() -> Self {
        let pods = PodBehaviour::default()
            .start_delay(POD_DELAY)
            .ready_delay(POD_DELAY);
        let cluster = NodeCluster::start_without_controller(pods).await;
        grant_lease(cluster.plane()).await;
        Self {
            cluster,
            running: JoinSet::new(),
        }
    }

    /// Client with its own user agent in the audit log, and with the default role and
    /// the lease only.
    fn client(&self, user_agent: String, fence: Option<Fence>) -> RestClient {
        let client = self.cluster.controller_client();
        let name = HeaderValue::try_from(user_agent).expect("a plain name");
        let service = service_fn(move |mut request: Request<Body>| {
            request
                .headers_mut()
                .insert(header::USER_AGENT, name.clone());
            let client = client.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        });
        let options = ClientOptions::default()
            .response_timeout(LeaderElectionConfig::default().request_timeout())
            .fence(fence);
        layered(service, &options)
    }

    /// Starts another instance.
    fn join(&mut self, name: &'static str, release_on_cancel: bool) -> Instance {
        let config = LeaderElectionConfig::default().release_on_cancel(release_on_cancel);
        let at = LeaseName::new(SYSTEM, LEASE);
        let client = self.client(format!("{name}-election"), None);
        let lock = LeaseLock::new(client, at, name.to_owned(), Arc::new(NoopRecorder));
        let jitter = Arc::new(SeededJitter::new(self.running.len() as u64));
        let parts = ElectorParts::new(lock, jitter)
            .clock(self.cluster.clock())
            .monotonic(Arc::new(TokioClock::new()));
        let elector = LeaderElector::new(config, parts).expect("times that work");
        let informers = self.client(format!("{name}-informers"), None);
        let writes = self.client(name.to_owned(), Some(elector.fence()));
        let controller = StatefulSetController::builder_with_clients(informers, writes)
            .recorder(Arc::new(NoopRecorder))
            .clock(self.cluster.clock())
            .resync_period(None)
            .seed(7)
            .build()
            .expect("the election is separate");
        let stop = CancellationToken::new();
        let (stopped, working) = (stop.clone(), stop.clone());
        let task = self.running.spawn(async move {
            let work = async {
                let ended = controller.run(working.cancelled_owned()).await;
                ended.expect("the controller ends at the shutdown");
            };
            (name, Box::pin(elector.run(&stopped, work)).await)
        });
        Instance { stop, task }
    }

    /// Waits until any instance ends.
    async fn ended(&mut self) -> (&'static str, Ended<()>) {
        let ended = self.running.join_next().await.expect("an instance runs");
        ended.expect("it was not killed")
    }

    async fn holder(&self) -> String {
        let lease = self.cluster.lease(LEASE).await;
        lease["spec"]["holderIdentity"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    }

    async fn settle(&self) {
        let leases = RequestMatcher::any().resource("leases");
        let settle = Settle::quiet_for(Duration::from_secs(30)).ignore(leases);
        let audit = self.cluster.plane().server().audit();
        audit.settle(&settle).await.expect("the cluster settles");
    }

    /// Successful writes of all instances.
    fn writes(&self) -> Vec<AuditEntry> {
        let audit = self.cluster.plane().server().audit();
        audit.matching(|entry| {
            entry.is_write() && entry.code < 300 && entry.user_agent.starts_with("instance")
        })
    }

    /// Checks that every write was made in its writer's term: after its write of the lease, before
    /// the renew deadline, and before any other instance wrote the lease.
    fn assert_one_writer_at_a_time(&self) {
        let deadline = LeaderElectionConfig::default().renew_deadline;
        let mut holder = None;
        for entry in self.writes() {
            if let Some(name) = entry.user_agent.strip_suffix("-election") {
                holder = Some((name.to_owned(), entry.received));
                continue;
            }
            let (name, renewed) = holder.clone().expect("the lease is written first");
            let since = entry.received.duration_since(renewed).unsigned_abs();
            let text = entry.summary();
            assert_eq!(name, entry.user_agent, "{text}");
            assert!(since < deadline, "{text}: {since:?} after the renewal");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn leader_that_cannot_renew_stops_writing() {
    integration::embedded_only!("injects faults");
    let mut election = ElectionCluster::start().await;
    election.join("instance-a", false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    election.join("instance-b", false);
    election
        .cluster
        .create(&STATEFUL_SETS, &manifests::web(12))
        .await;
    tokio::time::sleep(Duration::from_secs(13)).await;
    // Its controller still reaches the server.
    let renewals = RequestMatcher::any().user_agent("instance-a-election");
    let faults = election.cluster.plane().server().faults();
    faults.inject_always(renewals, FaultAction::DropBeforeCommit);
    let within = Duration::from_secs(10);
    let lost = Ended::Lost(Lost::NotRenewed { within });
    assert_eq!(election.ended().await, ("instance-a", lost));
    election.settle().await;
    assert_eq!(election.holder().await, "instance-b");
    election.assert_one_writer_at_a_time();
    let creations = |name: &str| {
        let writes = election.writes();
        let of_pods = |entry: &&AuditEntry| entry.summary().starts_with("create pods");
        let of_it = writes.iter().filter(|entry| entry.user_agent == name);
        of_it.filter(of_pods).count()
    };
    let (first, second) = (creations("instance-a"), creations("instance-b"));
    assert!(first > 2 && second > 2, "{first} {second}");
    assert_eq!(first + second, 12);
    assert_eq!(election.cluster.status("web").await["readyReplicas"], 12);
}

#[tokio::test(start_paused = true)]
async fn takeover_of_settled_sets_writes_only_the_lease() {
    integration::embedded_only!("reads the audit log");
    let mut election = ElectionCluster::start().await;
    let mut leader = election.join("instance-a", true);
    election
        .cluster
        .create(&STATEFUL_SETS, &manifests::web(3))
        .await;
    election.settle().await;
    for (turn, name) in ["instance-b", "instance-c", "instance-d", "instance-e"]
        .into_iter()
        .enumerate()
    {
        let before = election.writes().len();
        let next = election.join(name, true);
        if turn % 2 == 0 {
            leader.task.abort();
            while election.running.join_next().await.expect("it ends").is_ok() {}
        } else {
            leader.stop.cancel();
            assert_eq!(election.ended().await.1, Ended::Finished(()));
        }
        election.settle().await;
        assert_eq!(election.holder().await, name);
        let writes = election.writes();
        let others = writes[before..]
            .iter()
            .filter(|entry| entry.resource != "leases");
        assert_eq!(others.map(AuditEntry::summary).collect::<Vec<_>>(), [""; 0]);
        leader = next;
    }
    election.assert_one_writer_at_a_time();
}

#[tokio::test(start_paused = true)]
async fn leader_ends_when_its_lease_is_taken() {
    integration::embedded_only!("steals a lease");
    let mut election = ElectionCluster::start().await;
    election.join("instance-a", false);
    election
        .cluster
        .create(&STATEFUL_SETS, &manifests::web(1))
        .await;
    election.settle().await;
    let leases = election.cluster.plane().leases();
    let stolen = leases.steal(SYSTEM, LEASE, "thief");
    stolen.await.expect("there is a lease");
    let holder = "thief".to_owned();
    assert_eq!(
        election.ended().await,
        ("instance-a", Ended::Lost(Lost::Taken { holder }))
    );
    // The thief never renews.
    election.join("instance-b", false);
    election.settle().await;
    assert_eq!(election.holder().await, "instance-b");
    let lease = election.cluster.lease(LEASE).await;
    assert_eq!(lease["spec"]["leaseTransitions"], 2);
}

#[tokio::test(start_paused = true)]
async fn election_needs_three_verbs_on_leases() {
    integration::embedded_only!("reads the audit log");
    let mut election = ElectionCluster::start().await;
    election.join("instance-a", false);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let audit = election.cluster.plane().server().audit();
    let entries = audit.matching(|entry| entry.user_agent.ends_with("-election"));
    let mut requests: Vec<String> = entries.iter().map(AuditEntry::summary).collect();
    requests.dedup();
    let lease = format!("leases {SYSTEM}/{LEASE}");
    assert_eq!(
        requests,
        [
            format!("get {lease} 404"),
            format!("create {lease} 201"),
            format!("update {lease} 200"),
        ]
    );
}
