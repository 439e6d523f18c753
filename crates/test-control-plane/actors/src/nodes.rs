//! The nodes of the simulated cluster.

pub(crate) mod affinity;
pub(crate) mod taints;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use http::Method;
use kube_test_control_plane_api::members::{list_at, text};
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_api::setters;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::{ActorClient, path};

/// The nodes' OS image, which identifies simulated nodes.
pub const OS_IMAGE: &str = "Simulated";

/// The label with a node's zone.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The simulated nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct NodesConfig {
    /// The nodes.
    pub nodes: Vec<NodeConfig>,
}

/// A node as its kubelet registers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct NodeConfig {
    /// Its name.
    pub name: String,
    /// Additional labels, such as `topology.kubernetes.io/zone`.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<NodeTaint>,
    /// Allocatable resources, such as `cpu: 4` or `nvidia.com/gpu: 1`. CPU, memory, ephemeral
    /// storage and pods default to ample amounts.
    pub allocatable: BTreeMap<String, String>,
}

/// A taint of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct NodeTaint {
    /// Its key.
    pub key: String,
    /// Its value; empty for none.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

impl NodeTaint {
    setters! {
        /// Sets the key.
        key: into String,
        /// Sets the value.
        value: into String,
        /// Sets the effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
        effect: into String,
    }
}

impl Default for NodesConfig {
    /// Returns three nodes with ample resources.
    fn default() -> Self {
        Self::numbered(3)
    }
}

impl NodesConfig {
    /// Creates `count` nodes with ample resources: `node-0`, `node-1` and so on.
    pub fn numbered(count: usize) -> Self {
        let nodes = (0..count).map(|i| NodeConfig::new(&format!("node-{i}")));
        Self {
            nodes: nodes.collect(),
        }
    }

    setters! {
        /// Sets the nodes.
        nodes: each NodeConfig,
    }

    /// Sets each node's amount of a resource, such as `pods` or `cpu`.
    #[must_use]
    pub fn allocatable(mut self, resource: &str, amount: &str) -> Self {
        for node in &mut self.nodes {
            let amounts = &mut node.allocatable;
            amounts.insert(resource.to_owned(), amount.to_owned());
        }
        self
    }

    /// Distributes the nodes over zones in turn.
    #[must_use]
    pub fn zones(mut self, zones: &[&str]) -> Self {
        for (node, zone) in self.nodes.iter_mut().zip(zones.iter().cycle()) {
            let labels = &mut node.labels;
            labels.insert(ZONE.to_owned(), (*zone).to_owned());
        }
        self
    }
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self::new("node-0")
    }
}

impl NodeConfig {
    /// Creates a node with ample resources.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            allocatable: BTreeMap::new(),
        }
    }

    setters! {
        /// Sets the name.
        name: into String,
        /// Sets the additional labels, such as `topology.kubernetes.io/zone`.
        labels: pairs String => String,
        /// Sets the taints.
        taints: each NodeTaint,
        /// Sets the allocatable resources, such as `cpu: 4` or `nvidia.com/gpu: 1`.
        allocatable: pairs String => String,
    }

    /// Returns the node as its kubelet of this version registers it; `i` determines its address.
    pub(super) fn register(&self, i: u32, version: &str, now: &str) -> Value {
        let mut room = json!({
            "cpu": "64",
            "ephemeral-storage": "1Ti",
            "memory": "256Gi",
            "pods": "10000",
        });
        for (resource, amount) in &self.allocatable {
            room[resource] = json!(amount);
        }
        let mut labels = json!({
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
        });
        for (key, value) in &self.labels {
            labels[key] = json!(value);
        }
        let mut spec = json!({"podCIDR": subnet(i), "podCIDRs": [subnet(i)]});
        if !self.taints.is_empty() {
            let taints = self.taints.iter();
            let taints = taints.map(|t| taints::new(&t.key, &t.value, &t.effect, now));
            spec["taints"] = taints.collect();
        }
        let id = format!("{i:032x}");
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": spec,
            "status": {
                "capacity": room,
                "allocatable": room,
                "addresses": [
                    {"type": "InternalIP", "address": address(i)},
                    {"type": "Hostname", "address": self.name},
                ],
                "conditions": conditions(now),
                "nodeInfo": {
                    "architecture": "amd64",
                    "bootID": id,
                    "containerRuntimeVersion": "containerd://2.1.4",
                    "kernelVersion": "6.12.0",
                    "kubeProxyVersion": "",
                    "kubeletVersion": version,
                    "machineID": id,
                    "operatingSystem": "linux",
                    "osImage": OS_IMAGE,
                    "systemUUID": id,
                },
            },
        })
    }
}

/// Returns the address of node `i`, counted from 172.18.0.0.
fn address(i: u32) -> String {
    Ipv4Addr::from(0xac12_0000_u32.wrapping_add(i)).to_string()
}

/// Returns the pod network of node `i`, counted from 10.244.0.0/24.
fn subnet(i: u32) -> String {
    let network = 0x0af4_0000_u32.wrapping_add(i.wrapping_mul(256));
    format!("{}/24", Ipv4Addr::from(network))
}

/// Registers the nodes.
pub(super) async fn create_nodes(client: &ActorClient, config: &NodesConfig) {
    for (i, node) in (0..).zip(&config.nodes) {
        let now = client.server.now_text();
        let version = client.server.kubelet_version();
        let body = node.register(i, version, &now);
        let (_, made) = client.ask(Method::POST, "/api/v1/nodes", &body).await;
        // A real server taints new nodes as not ready. These are ready.
        if made.pointer("/spec/taints") != body.pointer("/spec/taints") {
            let taints = body.pointer("/spec/taints");
            let untainted = json!({"spec": {"taints": taints}});
            let path = path(&node_key(&node.name));
            client.ask(Method::PATCH, &path, &untainted).await;
        }
    }
}

/// Returns the first number whose address is unused.
pub(super) fn free_number(client: &ActorClient) -> u32 {
    let nodes = client.list("nodes", "");
    let mut taken = BTreeSet::new();
    for node in &nodes {
        let node = node.value();
        let addresses = list_at(&node, "/status/addresses");
        taken.extend(addresses.map(|a| text(a, "address").to_owned()));
    }
    (0..u32::MAX)
        .find(|i| !taken.contains(&address(*i)))
        .unwrap_or(0)
}

/// Returns the key of a node.
pub(super) fn node_key(name: &str) -> Key {
    Key::of("nodes", "", name)
}

/// Returns the conditions of a healthy node.
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
