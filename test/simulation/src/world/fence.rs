//! The label and the policies of a run with a fence.

use http::Method;
use serde_json::{Value, json};
use statefulset_fence::{FencePolicies, FenceSettings};

use super::cluster::Cluster;
use super::user::{NAMESPACE, User};
use crate::api_servers::{ApiServers, server_of};
use crate::network::{Fenced, Writer};
use crate::plan::{FencePart, PartState};

/// Path of the policies and bindings.
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// The fence of a run, as its administrator changes it.
pub(super) struct Fence {
    pub(super) servers: ApiServers,
    policies: FencePolicies,
}

impl Fence {
    /// # Panics
    ///
    /// Panics if the shipped settings are invalid.
    pub(super) fn new(servers: ApiServers) -> Self {
        let policies = FencePolicies::new(&FenceSettings::default());
        Self {
            servers,
            policies: policies.unwrap_or_else(|error| panic!("{error}")),
        }
    }

    /// Returns the API server of the next process with this number: its processes take turns.
    pub(super) fn of(&self, number: usize, cluster: &Cluster) -> Fenced {
        let life = cluster.instances.get(number).map_or(0, |it| it.life);
        Fenced {
            servers: self.servers.clone(),
            server: server_of(number, life),
            writer: if cluster.settings.is_built_in(number) {
                Writer::BuiltIn
            } else {
                Writer::Instance
            },
        }
    }

    /// Installs all parts.
    pub(super) async fn install(&self, user: &User) {
        for part in FencePart::ALL {
            self.set(user, part, PartState::Shipped).await;
        }
    }

    /// Adds or removes the label.
    pub(super) async fn label(&self, user: &User, is_labelled: bool) {
        let selector = FenceSettings::default().selector;
        let value = is_labelled.then(|| selector.value());
        let change = json!({"metadata": {"labels": {selector.key(): value}}});
        let path = format!("/api/v1/namespaces/{NAMESPACE}");
        user.merge(&path, &change).await;
        self.servers.label(is_labelled);
    }

    /// Changes a part.
    pub(super) async fn set(&self, user: &User, part: FencePart, state: PartState) {
        let (object, plural) = self.shipped(part);
        let collection = format!("{ADMISSION}/{plural}");
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let path = format!("{collection}/{}", name.unwrap_or_default());
        match state {
            PartState::Missing => user.request(Method::DELETE, &path, &json!({})).await,
            // An existing one keeps its uid.
            PartState::Shipped => {
                user.request(Method::POST, &collection, object).await;
                user.merge(&path, &json!({"spec": object.get("spec")}))
                    .await
            }
            PartState::Open => user.merge(&path, &opened(part)).await,
        };
        self.servers.part(part, state);
    }

    fn shipped(&self, part: FencePart) -> (&Value, &'static str) {
        let [mirror, mirror_binding, fence, fence_binding] = self.policies.objects();
        let (policies, bindings) = (
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        );
        match part {
            FencePart::Mirror => (mirror, policies),
            FencePart::MirrorBinding => (mirror_binding, bindings),
            FencePart::Fence => (fence, policies),
            FencePart::FenceBinding => (fence_binding, bindings),
        }
    }
}

/// A change with which a part denies nothing.
fn opened(part: FencePart) -> Value {
    match part {
        FencePart::Fence | FencePart::Mirror => {
            json!({"spec": {"validations": [{"expression": "true"}]}})
        }
        FencePart::FenceBinding | FencePart::MirrorBinding => {
            json!({"spec": {"validationActions": ["Audit"]}})
        }
    }
}
