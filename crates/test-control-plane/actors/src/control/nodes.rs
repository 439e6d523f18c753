//! A test's controls over nodes.

use http::Method;
use kube_test_control_plane_api::members::object_mut;
use serde_json::{Value, json};

use super::{ActionError, Handles, change, request};
use crate::client::{ActorClient, path};
use crate::kubelet::KubeletOrder;
use crate::node_controller::NodeOrder;
use crate::nodes::{self, NodeConfig, node_key, taints};
use crate::server::ActorServer;

/// A test's controls over the nodes of a control plane.
#[derive(Debug)]
pub struct Nodes<'a> {
    client: ActorClient,
    handles: &'a Handles,
}

impl<'a> Nodes<'a> {
    /// Controls the nodes of a server. For the crates of the control plane.
    #[doc(hidden)]
    pub fn new(server: &ActorServer, handles: &'a Handles) -> Self {
        let client = ActorClient::new(server, "test");
        Self { client, handles }
    }

    /// Disconnects a node: its kubelet neither receives nor reports anything, while its pods keep
    /// running. The node controller marks it unreachable after the grace period.
    pub async fn lose(&self, name: &str) {
        let node = name.into();
        self.handles.tell_kubelet(KubeletOrder::Lose { node }).await;
        let node = node_key(name);
        let order = NodeOrder::Lose { node };
        self.handles.tell_node_controller(order).await;
    }

    /// Reconnects a node: its kubelet catches up, stops deleted pods and reports the others.
    pub async fn heal(&self, name: &str) {
        let node = node_key(name);
        let order = NodeOrder::Heal { node };
        self.handles.tell_node_controller(order).await;
        let node = name.into();
        self.handles.tell_kubelet(KubeletOrder::Heal { node }).await;
    }

    /// Adds a ready node.
    ///
    /// # Errors
    ///
    /// A node with this name exists.
    pub async fn add(&self, name: &str, pods: usize) -> Result<(), ActionError> {
        let mut node = NodeConfig::new(name);
        node.allocatable.insert("pods".to_owned(), pods.to_string());
        self.add_as(&node).await
    }

    /// Adds a ready node with labels, taints and resources.
    ///
    /// # Errors
    ///
    /// A node with this name exists, or its definition is invalid.
    pub async fn add_as(&self, node: &NodeConfig) -> Result<(), ActionError> {
        let action = format!("adding node {}", node.name);
        let now = self.client.server.now_text();
        let version = self.client.server.kubelet_version();
        let node = node.register(nodes::free_number(&self.client), version, &now);
        request(&self.client, action, Method::POST, "/api/v1/nodes", &node).await
    }

    /// Deletes a node along with its machine and running pods.
    ///
    /// # Errors
    ///
    /// The node does not exist.
    pub async fn delete(&self, name: &str) -> Result<(), ActionError> {
        let path = path(&node_key(name));
        let action = format!("deleting node {name}");
        request(&self.client, action, Method::DELETE, &path, &json!({})).await
    }

    /// Cordons a node against new pods.
    ///
    /// # Errors
    ///
    /// The node does not exist.
    pub async fn cordon(&self, name: &str) -> Result<(), ActionError> {
        let set = |node: &mut Value| {
            object_mut(node, "spec").insert("unschedulable".to_owned(), json!(true));
        };
        self.change("cordoning", name, set).await
    }

    /// Uncordons a node.
    ///
    /// # Errors
    ///
    /// The node does not exist.
    pub async fn uncordon(&self, name: &str) -> Result<(), ActionError> {
        let set = |node: &mut Value| {
            object_mut(node, "spec").remove("unschedulable");
        };
        self.change("uncordoning", name, set).await
    }

    /// Adds a taint to a node, with effect `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    ///
    /// # Errors
    ///
    /// The node does not exist, or the taint is invalid.
    pub async fn taint(
        &self,
        name: &str,
        key: &str,
        value: &str,
        effect: &str,
    ) -> Result<(), ActionError> {
        let taint = taints::new(key, value, effect, &self.client.server.now_text());
        let set = |node: &mut Value| {
            let spec = object_mut(node, "spec");
            let list = spec.entry("taints").or_insert(json!([]));
            if let Some(list) = list.as_array_mut() {
                list.retain(|old| !taints::is(old, key, effect));
                list.push(taint.clone());
            }
        };
        self.change("tainting", name, set).await
    }

    /// Removes every taint with this key from a node.
    ///
    /// # Errors
    ///
    /// The node does not exist.
    pub async fn untaint(&self, name: &str, key: &str) -> Result<(), ActionError> {
        let set = |node: &mut Value| {
            let spec = object_mut(node, "spec");
            if let Some(list) = spec.get_mut("taints").and_then(Value::as_array_mut) {
                list.retain(|taint| taint["key"] != key);
            }
        };
        self.change("untainting", name, set).await
    }

    /// Taints a node as out of service, so that its terminating pods are force-deleted.
    ///
    /// # Errors
    ///
    /// The node does not exist.
    pub async fn set_out_of_service(&self, name: &str) -> Result<(), ActionError> {
        let value = "nodeshutdown";
        self.taint(name, taints::OUT_OF_SERVICE, value, "NoExecute")
            .await
    }

    /// Changes the current version of a node.
    async fn change(
        &self,
        action: &str,
        name: &str,
        set: impl Fn(&mut Value),
    ) -> Result<(), ActionError> {
        let action = format!("{action} node {name}");
        change(&self.client, action, &node_key(name), set).await
    }
}
