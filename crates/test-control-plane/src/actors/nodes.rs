//! The nodes of the simulated cluster.

use http::Method;
use serde_json::{Value, json};

use super::client::{ActorClient, path};
use crate::object::Key;

/// What the nodes say they run, which tells them from those of a real cluster.
pub(crate) const OS_IMAGE: &str = "Simulated";

/// Which nodes there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesConfig {
    /// How many; they are called `node-0`, `node-1` and so on.
    pub count: usize,
    /// How many pods each has room for.
    pub pods: usize,
}

impl Default for NodesConfig {
    fn default() -> Self {
        Self {
            count: 3,
            pods: 10_000,
        }
    }
}

/// Registers the nodes.
pub(super) async fn create_nodes(client: &ActorClient, config: &NodesConfig) {
    for i in 0..config.count {
        let now = client.server.now_text();
        let name = format!("node-{i}");
        let node = node(&name, i, config.pods, &now);
        let (_, made) = client.ask(Method::POST, "/api/v1/nodes", &node).await;
        // A real server taints new nodes until somebody finds them ready, which these are.
        if made.pointer("/spec/taints").is_some() {
            let untainted = json!({"spec": {"taints": null}});
            let path = path(&node_key(&name));
            client.ask(Method::PATCH, &path, &untainted).await;
        }
    }
}

/// The key of a node.
pub(super) fn node_key(name: &str) -> Key {
    Key {
        storage: "nodes",
        namespace: "".into(),
        name: name.into(),
    }
}

/// A node as its kubelet registers it; `i` numbers its address.
pub(super) fn node(name: &str, i: usize, pods: usize, now: &str) -> Value {
    let (high, low) = (i / 256 % 256, i % 256);
    let room = json!({
        "cpu": "64",
        "ephemeral-storage": "1Ti",
        "memory": "256Gi",
        "pods": pods.to_string(),
    });
    let subnet = format!("10.244.{low}.0/24");
    let id = format!("{i:032x}");
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": {"podCIDR": subnet, "podCIDRs": [subnet]},
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [
                {"type": "InternalIP", "address": format!("172.18.{high}.{low}")},
                {"type": "Hostname", "address": name},
            ],
            "conditions": conditions(now),
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": id,
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.12.0",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.2",
                "machineID": id,
                "operatingSystem": "linux",
                "osImage": OS_IMAGE,
                "systemUUID": id,
            },
        },
    })
}

/// The conditions that a kubelet reports while all is well.
pub(super) fn conditions(now: &str) -> Value {
    let rows = [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        (
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        (
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        ),
    ];
    let condition = |(name, status, reason, message)| {
        json!({
            "type": name,
            "status": status,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        })
    };
    rows.into_iter().map(condition).collect()
}
