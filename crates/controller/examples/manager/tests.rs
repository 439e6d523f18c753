//! The manager against the test control plane.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::audit::Settle;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::*;

/// A control plane and a running manager.
struct RunningManager {
    plane: TestControlPlane,
    client: kube::Client,
    metrics_port: SocketAddr,
    stop: CancellationToken,
    manager: JoinSet<anyhow::Result<()>>,
}

impl RunningManager {
    async fn start() -> Self {
        let plane = TestControlPlane::builder().all_actors().start().await;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let metrics_port = port.local_addr().unwrap();
        let manager = Manager {
            server: "test".to_owned(),
            client: plane.client(),
            identity: "me".to_owned(),
            metrics_port: port,
        };
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(manager.run(stop.clone()));
        Self {
            client: plane.client(),
            plane,
            metrics_port,
            manager: tasks,
            stop,
        }
    }

    /// Waits for the end of the manager.
    async fn ended(&mut self) -> anyhow::Result<()> {
        self.manager.join_next().await.unwrap().unwrap()
    }

    async fn create_set(&self, name: &str) {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name},
            "spec": {
                "replicas": 2, "serviceName": name,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        });
        let sets: Api<StatefulSet> = Api::default_namespaced(self.client.clone());
        let set = serde_json::from_value(set).unwrap();
        sets.create(&PostParams::default(), &set).await.unwrap();
    }

    async fn settle(&self) {
        let quiet = Settle::quiet_for(Duration::from_secs(60));
        self.plane.server().audit().settle(&quiet).await.unwrap();
    }

    async fn pods(&self) -> Vec<String> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let pods = pods.list(&ListParams::default()).await.unwrap();
        pods.iter().map(ResourceExt::name_any).collect()
    }

    async fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.metrics_port).await.unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

#[tokio::test(start_paused = true)]
async fn both_controllers_work_under_one_lease_and_metrics_port() {
    let mut world = RunningManager::start().await;
    world.create_set("web").await;
    world.settle().await;

    assert_eq!(world.pods().await, ["web-0", "web-1"]);
    let services: Api<Service> = Api::default_namespaced(world.client.clone());
    let service = services.get("web").await.unwrap().spec.unwrap();
    assert_eq!(service.cluster_ip.as_deref(), Some("None"));
    let metrics = world.metrics().await;
    for line in [
        r#"leader_election_master_status{name="my-controller-manager"} 1"#,
        "my_services_created_total 1",
        r#"workqueue_depth{name="statefulset"} 0"#,
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} in {metrics}");
    }

    world.stop.cancel();
    world.ended().await.unwrap();
    let leases: Api<Lease> = Api::default_namespaced(world.client);
    let lease = leases.get(PROGRAM).await.unwrap().spec.unwrap();
    assert_eq!(lease.holder_identity.as_deref(), Some(""), "is released");
}

#[tokio::test(start_paused = true)]
async fn lost_lease_ends_both_controllers() {
    let mut world = RunningManager::start().await;
    world.create_set("web").await;
    world.settle().await;
    let leases: Api<Lease> = Api::default_namespaced(world.client.clone());
    let taken = Patch::Merge(json!({"spec": {"holderIdentity": "another"}}));
    let parameters = PatchParams::default();
    leases.patch(PROGRAM, &parameters, &taken).await.unwrap();
    let error = world.ended().await.unwrap_err();
    let expected = r#"the lease is lost: "another" has taken it"#;
    assert_eq!(error.to_string(), expected);

    world.create_set("late").await;
    world.settle().await;
    assert_eq!(world.pods().await, ["web-0", "web-1"]);
    let services: Api<Service> = Api::default_namespaced(world.client);
    assert!(services.get_opt("late").await.unwrap().is_none());
}
