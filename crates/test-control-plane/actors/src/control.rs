//! Test operations on the pods and nodes of a running control plane.

mod leases;
mod nodes;

use std::sync::atomic::{AtomicU64, Ordering};

use http::Method;
use kube_test_control_plane_api::object::Key;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::client::{ActorClient, path};
use super::invariants::Invariants;
use super::kubelet::{
    Cause, Crash, Ending, KubeletOrder, PodBehaviour, PodRule, PodRuleId, RunningPod,
};
use super::node_controller::NodeOrder;
use super::runner::Orders;
use super::scheduler::SchedulerOrder;
use super::server::ActorServer;
pub use leases::Leases;
pub use nodes::Nodes;

/// Attempts to change an object before giving up on write conflicts.
const TRIES: u32 = 5;

/// Handles to the running actors.
#[derive(Debug, Default)]
pub struct Handles {
    pub(super) kubelet: Option<Orders<KubeletOrder>>,
    pub(super) node_controller: Option<Orders<NodeOrder>>,
    pub(super) scheduler: Option<Orders<SchedulerOrder>>,
    /// Violations seen so far.
    pub invariants: Invariants,
    /// Number of rules added so far.
    rules: AtomicU64,
}

impl Handles {
    async fn order_kubelet(&self, order: KubeletOrder) {
        if let Some(kubelet) = &self.kubelet {
            kubelet.give(order).await;
        }
    }

    async fn order_scheduler(&self, order: SchedulerOrder) {
        if let Some(scheduler) = &self.scheduler {
            scheduler.give(order).await;
        }
    }

    async fn order_node_controller(&self, order: NodeOrder) {
        if let Some(node_controller) = &self.node_controller {
            node_controller.give(order).await;
        }
    }
}

/// A request rejected by the API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{action}: {code} {message}")]
pub struct ActionError {
    /// The attempted action and its object.
    pub action: String,
    /// The HTTP status code.
    pub code: u16,
    /// The server's message.
    pub message: String,
}

/// Operations on the pods of a control plane.
///
/// Operations that only a node performs need the kubelet, and scheduling operations need the
/// scheduler; without that actor they do nothing. The rest are ordinary API requests.
#[derive(Debug)]
pub struct Pods<'a> {
    client: ActorClient,
    handles: &'a Handles,
}

impl<'a> Pods<'a> {
    /// Creates a handle to the pods of a server.
    pub fn new(server: &ActorServer, handles: &'a Handles) -> Self {
        let client = ActorClient::new(server, "test");
        Self { client, handles }
    }

    /// Sets the behaviour of pods with this name. It overrides configuration and annotations.
    pub async fn behave(&self, namespace: &str, name: &str, behaviour: PodBehaviour) {
        let order = KubeletOrder::Behave {
            pod: pod_key(namespace, name),
            behaviour: Some(Box::new(behaviour)),
        };
        self.handles.order_kubelet(order).await;
    }

    /// Returns the pods of this name to their configured behaviour.
    pub async fn behave_as_configured(&self, namespace: &str, name: &str) {
        let order = KubeletOrder::Behave {
            pod: pod_key(namespace, name),
            behaviour: None,
        };
        self.handles.order_kubelet(order).await;
    }

    /// Evaluates the closure [`KubeletConfig::rule`](super::KubeletConfig::rule) and the rules
    /// again for every pod. Each pod write evaluates them anyway; call this when the closure's
    /// result has changed since.
    pub async fn refresh(&self) {
        self.handles.order_kubelet(KubeletOrder::Refresh).await;
    }

    /// Adds a rule with the highest precedence. It also applies to running pods.
    pub async fn add_rule(&self, rule: PodRule) -> PodRuleId {
        let id = PodRuleId(self.handles.rules.fetch_add(1, Ordering::Relaxed));
        let rule = Box::new(rule);
        let order = KubeletOrder::AddRule { id, rule };
        self.handles.order_kubelet(order).await;
        id
    }

    /// Removes an added rule. The remaining rules apply.
    pub async fn remove_rule(&self, id: PodRuleId) {
        let order = KubeletOrder::RemoveRule { id };
        self.handles.order_kubelet(order).await;
    }

    /// Crashes a container now, if it is running. The crash's delay and count are ignored.
    pub async fn crash(&self, namespace: &str, name: &str, crash: Crash) {
        let pod = pod_key(namespace, name);
        let order = KubeletOrder::Crash { pod, crash };
        self.handles.order_kubelet(order).await;
    }

    /// Marks the running containers ready or unready until something else changes that.
    pub async fn set_ready(&self, namespace: &str, name: &str, ready: bool) {
        let pod = pod_key(namespace, name);
        let order = KubeletOrder::SetReady { pod, ready };
        self.handles.order_kubelet(order).await;
    }

    /// Moves a pod to the phase Failed.
    pub async fn fail(&self, namespace: &str, name: &str, cause: Cause) {
        self.end(namespace, name, true, cause).await;
    }

    /// Moves a pod to the phase Succeeded.
    pub async fn succeed(&self, namespace: &str, name: &str, cause: Cause) {
        self.end(namespace, name, false, cause).await;
    }

    async fn end(&self, namespace: &str, name: &str, failed: bool, cause: Cause) {
        let order = KubeletOrder::End {
            pod: pod_key(namespace, name),
            ending: Ending { failed, cause },
        };
        self.handles.order_kubelet(order).await;
    }

    /// Keeps the pods of this name unschedulable until they are released.
    pub async fn hold(&self, namespace: &str, name: &str) {
        let pod = pod_key(namespace, name);
        self.handles
            .order_scheduler(SchedulerOrder::Hold { pod })
            .await;
    }

    /// Makes the pods of this name schedulable, overriding configuration and annotations.
    pub async fn release(&self, namespace: &str, name: &str) {
        let pod = pod_key(namespace, name);
        self.handles
            .order_scheduler(SchedulerOrder::Release { pod })
            .await;
    }

    /// Lists every pod with running containers, sorted by name. It includes pods that were
    /// force-deleted while their node was lost, although the API server no longer has them.
    pub async fn running(&self) -> Vec<RunningPod> {
        let (sender, answer) = oneshot::channel();
        let order = KubeletOrder::Running(sender);
        self.handles.order_kubelet(order).await;
        answer.await.unwrap_or_default()
    }

    /// Requests a pod's eviction.
    ///
    /// # Errors
    ///
    /// A disruption budget forbids the eviction, or the pod doesn't exist.
    pub async fn evict(&self, namespace: &str, name: &str) -> Result<(), ActionError> {
        let key = pod_key(namespace, name);
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        });
        let path = format!("{}/eviction", path(&key));
        let action = format!("evicting pod {namespace}/{name}");
        request(&self.client, action, Method::POST, &path, &body).await
    }

    /// Deletes a pod, with its own grace period by default.
    ///
    /// # Errors
    ///
    /// The pod doesn't exist.
    pub async fn delete(
        &self,
        namespace: &str,
        name: &str,
        grace_period_seconds: Option<i64>,
    ) -> Result<(), ActionError> {
        let key = pod_key(namespace, name);
        let body = match grace_period_seconds {
            Some(seconds) => json!({"gracePeriodSeconds": seconds}),
            None => json!({}),
        };
        let action = format!("deleting pod {namespace}/{name}");
        request(&self.client, action, Method::DELETE, &path(&key), &body).await
    }
}

async fn request(
    client: &ActorClient,
    action: String,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<(), ActionError> {
    let (code, answer) = client.ask(method, path, body).await;
    if (200..300).contains(&code) {
        return Ok(());
    }
    let message = answer.get("message").and_then(Value::as_str);
    Err(ActionError {
        action,
        code,
        message: message.unwrap_or("the connection was dropped").to_owned(),
    })
}

/// Changes the current version of an object.
async fn change(
    client: &ActorClient,
    action: String,
    key: &Key,
    set: impl Fn(&mut Value),
) -> Result<(), ActionError> {
    let path = path(key);
    let mut tries = 0;
    loop {
        let mut object = match client.get(key) {
            Some(object) => object.value(),
            None => json!({"metadata": {"name": *key.name}}),
        };
        set(&mut object);
        let answer = request(client, action.clone(), Method::PUT, &path, &object).await;
        tries += 1;
        match answer {
            Err(err) if err.code == 409 && tries < TRIES => {}
            other => return other,
        }
    }
}

fn pod_key(namespace: &str, name: &str) -> Key {
    Key {
        storage: "pods",
        namespace: namespace.into(),
        name: name.into(),
    }
}
