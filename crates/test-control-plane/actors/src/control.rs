//! A test's controls over pods and nodes of a running control plane.

mod leases;
mod nodes;

use std::sync::atomic::{AtomicU64, Ordering};

use http::Method;
use kube_test_control_plane_api::object::Key;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::client::{ActorClient, path};
use super::kubelet::{
    Cause, Crash, Ending, Invariants, KubeletOrder, PodBehaviour, PodRule, PodRuleId, RunningPod,
};
use super::node_controller::NodeOrder;
use super::runner::Orders;
use super::scheduler::SchedulerOrder;
use super::server::ActorServer;
pub use leases::Leases;
pub use nodes::Nodes;

/// Attempts to change an object that others change at the same time.
const TRIES: u32 = 5;

/// Handles to the running actors.
#[derive(Debug, Default)]
pub struct Handles {
    pub(super) kubelet: Option<Orders<KubeletOrder>>,
    pub(super) node_controller: Option<Orders<NodeOrder>>,
    pub(super) scheduler: Option<Orders<SchedulerOrder>>,
    /// Invariant violations seen so far.
    pub invariants: Invariants,
    /// Number of rules added.
    rules: AtomicU64,
}

impl Handles {
    async fn tell_kubelet(&self, order: KubeletOrder) {
        if let Some(kubelet) = &self.kubelet {
            kubelet.give(order).await;
        }
    }

    async fn tell_scheduler(&self, order: SchedulerOrder) {
        if let Some(scheduler) = &self.scheduler {
            scheduler.give(order).await;
        }
    }

    async fn tell_node_controller(&self, order: NodeOrder) {
        if let Some(node_controller) = &self.node_controller {
            node_controller.give(order).await;
        }
    }
}

/// A request that the API server refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{action}: {code} {message}")]
#[non_exhaustive]
pub struct ActionError {
    /// The attempted action with its object.
    pub action: String,
    /// The HTTP status code.
    pub code: u16,
    /// The server's message.
    pub message: String,
}

/// A test's controls over the pods of a control plane.
///
/// Some methods need the kubelet or the scheduler, and do nothing without it. The others send
/// requests like any client.
#[derive(Debug)]
pub struct Pods<'a> {
    client: ActorClient,
    handles: &'a Handles,
}

impl<'a> Pods<'a> {
    /// Controls the pods of a server. For the crates of the control plane.
    #[doc(hidden)]
    pub fn new(server: &ActorServer, handles: &'a Handles) -> Self {
        let client = ActorClient::new(server, "test");
        Self { client, handles }
    }

    /// Overrides the behaviour of the pods with this name. The override wins over configuration and
    /// annotations.
    pub async fn behave(&self, namespace: &str, name: &str, behaviour: PodBehaviour) {
        let order = KubeletOrder::Behave {
            pod: pod_key(namespace, name),
            behaviour: Some(Box::new(behaviour)),
        };
        self.handles.tell_kubelet(order).await;
    }

    /// Removes the override for the pods with this name.
    pub async fn behave_as_configured(&self, namespace: &str, name: &str) {
        let order = KubeletOrder::Behave {
            pod: pod_key(namespace, name),
            behaviour: None,
        };
        self.handles.tell_kubelet(order).await;
    }

    /// Evaluates the closure [`KubeletConfig::rule`](super::KubeletConfig::rule) and the rules
    /// again for each pod. They are also evaluated on every write to a pod; call this after a
    /// change of the closure's own state.
    pub async fn refresh(&self) {
        self.handles.tell_kubelet(KubeletOrder::Refresh).await;
    }

    /// Adds a rule that takes precedence over all existing rules, for running pods too.
    pub async fn add_rule(&self, rule: PodRule) -> PodRuleId {
        let id = PodRuleId(self.handles.rules.fetch_add(1, Ordering::Relaxed));
        let rule = Box::new(rule);
        let order = KubeletOrder::AddRule { id, rule };
        self.handles.tell_kubelet(order).await;
        id
    }

    /// Removes an added rule. Its pods follow the remaining rules.
    pub async fn remove_rule(&self, id: PodRuleId) {
        let order = KubeletOrder::RemoveRule { id };
        self.handles.tell_kubelet(order).await;
    }

    /// Crashes a running container now. The crash's `after` and `times` are ignored.
    pub async fn crash(&self, namespace: &str, name: &str, crash: Crash) {
        let pod = pod_key(namespace, name);
        let order = KubeletOrder::Crash { pod, crash };
        self.handles.tell_kubelet(order).await;
    }

    /// Marks the running containers ready or unready, until a later change.
    pub async fn set_ready(&self, namespace: &str, name: &str, ready: bool) {
        let pod = pod_key(namespace, name);
        let order = KubeletOrder::SetReady { pod, ready };
        self.handles.tell_kubelet(order).await;
    }

    /// Ends a pod with phase Failed.
    pub async fn fail(&self, namespace: &str, name: &str, cause: Cause) {
        self.end(namespace, name, true, cause).await;
    }

    /// Ends a pod with phase Succeeded.
    pub async fn succeed(&self, namespace: &str, name: &str, cause: Cause) {
        self.end(namespace, name, false, cause).await;
    }

    async fn end(&self, namespace: &str, name: &str, failed: bool, cause: Cause) {
        let order = KubeletOrder::End {
            pod: pod_key(namespace, name),
            ending: Ending { failed, cause },
        };
        self.handles.tell_kubelet(order).await;
    }

    /// Makes the pods with this name unschedulable until they are released.
    pub async fn hold(&self, namespace: &str, name: &str) {
        let pod = pod_key(namespace, name);
        self.handles
            .tell_scheduler(SchedulerOrder::Hold { pod })
            .await;
    }

    /// Releases the held pods with this name, in spite of configuration and annotations.
    pub async fn release(&self, namespace: &str, name: &str) {
        let pod = pod_key(namespace, name);
        self.handles
            .tell_scheduler(SchedulerOrder::Release { pod })
            .await;
    }

    /// Adds lines to the log of a running container, now.
    pub async fn log(&self, namespace: &str, name: &str, container: &str, text: &str) {
        let order = KubeletOrder::Log {
            pod: pod_key(namespace, name),
            container: container.to_owned(),
            text: text.to_owned(),
        };
        self.handles.tell_kubelet(order).await;
    }

    /// Returns every pod with running containers on some node, ordered by name. This includes pods
    /// that were force-deleted on a lost node, which the API server no longer knows.
    pub async fn running(&self) -> Vec<RunningPod> {
        let (sender, answer) = oneshot::channel();
        let order = KubeletOrder::Running(sender);
        self.handles.tell_kubelet(order).await;
        answer.await.unwrap_or_default()
    }

    /// Evicts a pod.
    ///
    /// # Errors
    ///
    /// A disruption budget forbids the eviction, or the pod does not exist.
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

    /// Deletes a pod, with the given grace period or else its own.
    ///
    /// # Errors
    ///
    /// The pod does not exist.
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
    Key::of("pods", namespace, name)
}
