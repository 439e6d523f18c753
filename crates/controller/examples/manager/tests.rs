//! The manager against the test control plane.

use std::net::SocketAddr;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::conditions::is_pod_running;
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt};
use kube_test_control_plane::TestControlPlane;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::*;

/// A control plane and a running manager.
struct RunningManager {
    _plane: TestControlPlane,
    client: kube::Client,
    metrics_port: SocketAddr,
    stop: CancellationToken,
    manager: JoinSet<anyhow::Result<()>>,
}

impl RunningManager {
    async fn start() -> Self {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let plane = TestControlPlane::builder().all_actors().listen(any_port);
        let plane = plane.try_start().await.unwrap();
        let kubeconfig = plane.kubeconfig().unwrap().to_string();
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let metrics_port = port.local_addr().unwrap();
        let manager = Manager {
            config: config.unwrap(),
            identity: "me".to_owned(),
            metrics_port: port,
        };
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(manager.run(stop.clone()));
        Self {
            client: plane.client(),
            _plane: plane,
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

    /// Waits until both controllers have done their work for the set `web`.
    async fn web_runs(&self) {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let running = await_condition(pods, "web-1", is_pod_running());
        running.await.unwrap();
        let exists = |service: Option<&Service>| service.is_some();
        let created = await_condition(self.services(), "web", exists);
        created.await.unwrap();
    }

    fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
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
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }
}

// The control plane and the manager share the port.
#[tokio::test(flavor = "multi_thread")]
async fn both_controllers_work_under_one_lease_and_metrics_port() {
    let mut world = RunningManager::start().await;
    world.create_set("web").await;
    world.web_runs().await;

    assert_eq!(world.pods().await, ["web-0", "web-1"]);
    let service = world.services().get("web").await.unwrap().spec.unwrap();
    assert_eq!(service.cluster_ip.as_deref(), Some("None"));
    for line in [
        r#"leader_election_master_status{name="my-controller-manager"} 1"#,
        "my_services_created_total 1",
        r#"workqueue_depth{name="statefulset"} 0"#,
    ] {
        // The counters may lag behind the objects.
        while !world.metrics().await.lines().any(|it| it == line) {}
    }

    world.stop.cancel();
    world.ended().await.unwrap();
    let leases: Api<Lease> = Api::default_namespaced(world.client);
    let lease = leases.get(PROGRAM).await.unwrap().spec.unwrap();
    assert_eq!(lease.holder_identity.as_deref(), Some(""), "is released");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_lease_ends_both_controllers() {
    let mut world = RunningManager::start().await;
    world.create_set("web").await;
    world.web_runs().await;
    let leases: Api<Lease> = Api::default_namespaced(world.client.clone());
    let taken = Patch::Merge(json!({"spec": {"holderIdentity": "another"}}));
    let parameters = PatchParams::default();
    leases.patch(PROGRAM, &parameters, &taken).await.unwrap();
    let error = world.ended().await.unwrap_err();
    let expected = r#"the lease is lost: "another" has taken it"#;
    assert_eq!(error.to_string(), expected);

    world.create_set("late").await;
    assert_eq!(world.pods().await, ["web-0", "web-1"]);
    assert!(world.services().get_opt("late").await.unwrap().is_none());
}
