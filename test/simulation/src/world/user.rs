//! The actions of users.

use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kube_test_control_plane::auth::ServiceAs;
use serde_json::{Value, json};
use tower::Service as _;

use crate::plan::{Action, Cascade, UpdateMode};

/// Namespace of all sets.
pub const NAMESPACE: &str = "default";

/// Value of the label `app` that no set selects.
pub(super) const OTHER: &str = "other";

/// A finalizer that only users remove.
pub(super) const HOLD: &str = "example.com/hold";

/// Content type of a JSON merge patch.
const MERGE_PATCH: &str = "application/merge-patch+json";

/// A user with all permissions.
#[derive(Clone)]
pub(super) struct User {
    server: ServiceAs,
    agent: &'static str,
}

impl User {
    /// Creates a user whose requests have this user agent.
    pub(super) fn new(server: ServiceAs, agent: &'static str) -> Self {
        Self { server, agent }
    }

    /// Does what the action says. The API server's refusals are ignored, as for objects that don't
    /// exist.
    pub(super) async fn act(&self, action: &Action) {
        match action {
            Action::Create(spec) => self.create("statefulsets", &spec.manifest()).await,
            Action::CreateWith { spec, change } => {
                let mut manifest = spec.manifest();
                merge(&mut manifest, change);
                self.create("statefulsets", &manifest).await;
            }
            Action::CreateObject { resource, object } => self.create(resource, object).await,
            Action::Edit {
                resource,
                name,
                change,
            } => {
                let path = path(resource, name);
                self.send(Method::PATCH, &path, change, MERGE_PATCH).await;
            }
            Action::Delete { set, cascade } => {
                let policy = match cascade {
                    Cascade::Background => "Background",
                    Cascade::Foreground => "Foreground",
                    Cascade::Orphan => "Orphan",
                };
                let body = json!({"propagationPolicy": policy});
                let path = path("statefulsets", set);
                self.request(Method::DELETE, &path, &body).await;
            }
            Action::DeletePod { pod, force } => {
                let body = if *force {
                    json!({"gracePeriodSeconds": 0})
                } else {
                    json!({})
                };
                let path = path("pods", pod);
                self.request(Method::DELETE, &path, &body).await;
            }
            Action::DeleteClaim { claim } => {
                let path = path("persistentvolumeclaims", claim);
                self.request(Method::DELETE, &path, &json!({})).await;
            }
            Action::Decoy { set, pod } => {
                let decoy = json!({
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": pod, "labels": {"app": set}},
                    "spec": {"containers": [{"name": "main", "image": "decoy"}]},
                });
                self.create("pods", &decoy).await;
            }
            Action::Relabel { pod, matches } => {
                let app = match (matches, pod.rsplit_once('-')) {
                    (true, Some((set, _))) => set,
                    _ => OTHER,
                };
                let change = json!({"metadata": {"labels": {"app": app}}});
                self.patch("pods", pod, &change).await;
            }
            Action::Hold {
                resource,
                name,
                holds,
            } => {
                let member = if *holds {
                    "finalizers"
                } else {
                    "$deleteFromPrimitiveList/finalizers"
                };
                let change = json!({"metadata": {member: [HOLD]}});
                self.patch(resource, name, &change).await;
            }
            other => {
                if let Some((set, spec)) = spec_change(other) {
                    let change = json!({ "spec": spec });
                    self.patch("statefulsets", set, &change).await;
                }
            }
        }
    }

    /// Deletes a pod.
    pub(super) async fn delete_pod(&self, pod: &str) {
        self.delete("pods", pod).await;
    }

    /// Deletes an object.
    pub(super) async fn delete(&self, resource: &str, name: &str) {
        let path = path(resource, name);
        self.request(Method::DELETE, &path, &json!({})).await;
    }

    pub(super) async fn create(&self, resource: &str, object: &Value) {
        let path = path(resource, "");
        self.request(Method::POST, &path, object).await;
    }

    pub(super) async fn patch(&self, resource: &str, name: &str, change: &Value) {
        let path = path(resource, name);
        self.request(Method::PATCH, &path, change).await;
    }

    /// Sends a JSON merge patch of any object; returns the status code.
    pub(super) async fn merge(&self, path: &str, change: &Value) -> u16 {
        self.send(Method::PATCH, path, change, MERGE_PATCH).await
    }

    pub(super) async fn request(&self, method: Method, path: &str, body: &Value) -> u16 {
        let content = match method {
            Method::PATCH => "application/strategic-merge-patch+json",
            _ => "application/json",
        };
        self.send(method, path, body, content).await
    }

    /// Sends a request; returns the status code, or 0 if the connection broke.
    async fn send(&self, method: Method, path: &str, body: &Value, content: &str) -> u16 {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("user-agent", self.agent)
            .header("content-type", content)
            .body(Full::from(body.to_string()));
        let Ok(request) = request else { return 0 };
        let Ok(reply) = self.server.clone().call(request).await else {
            return 0;
        };
        let code = reply.status().as_u16();
        // The connection is done once the body is read.
        drop(reply.into_body().collect().await);
        code
    }
}

/// Returns the change of a set's spec.
fn spec_change(action: &Action) -> Option<(&str, Value)> {
    let change = match action {
        Action::Scale { set, replicas } => (set, json!({"replicas": replicas})),
        Action::Image { set, image } => {
            let containers = json!([{"name": "main", "image": image}]);
            (
                set,
                json!({"template": {"spec": {"containers": containers}}}),
            )
        }
        Action::Template { set, change } => (set, json!({"template": change})),
        Action::Partition { set, partition } => (
            set,
            json!({"updateStrategy": {"rollingUpdate": {"partition": partition}}}),
        ),
        Action::MaxUnavailable { set, max } => (
            set,
            json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": max}}}),
        ),
        Action::Retention { set, retention } => (
            set,
            json!({"persistentVolumeClaimRetentionPolicy": retention}),
        ),
        Action::FirstOrdinal { set, start } => (set, json!({"ordinals": {"start": start}})),
        Action::UpdateMode { set, mode } => {
            let rolling = match mode {
                UpdateMode::RollingUpdate => json!({"partition": 0}),
                UpdateMode::OnDelete => Value::Null,
            };
            (
                set,
                json!({"updateStrategy": {"type": mode, "rollingUpdate": rolling}}),
            )
        }
        Action::MinReadySeconds { set, seconds } => (set, json!({"minReadySeconds": seconds})),
        Action::HistoryLimit { set, limit } => (set, json!({"revisionHistoryLimit": limit})),
        _ => return None,
    };
    Some((change.0, change.1))
}

/// Applies a JSON merge patch.
fn merge(value: &mut Value, change: &Value) {
    let Value::Object(change) = change else {
        *value = change.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, change) in change {
        if change.is_null() {
            if let Some(members) = value.as_object_mut() {
                members.remove(name);
            }
        } else {
            merge(&mut value[name], change);
        }
    }
}

fn path(resource: &str, name: &str) -> String {
    let group = match resource {
        "statefulsets" | "controllerrevisions" => "apis/apps/v1",
        "poddisruptionbudgets" => "apis/policy/v1",
        "roles" | "rolebindings" => "apis/rbac.authorization.k8s.io/v1",
        _ => "api/v1",
    };
    let base = format!("/{group}/namespaces/{NAMESPACE}/{resource}");
    if name.is_empty() {
        base
    } else {
        format!("{base}/{name}")
    }
}
