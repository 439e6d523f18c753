//! Pod fields that several actors read.

mod host_port;

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::members::list_at;
use kube_test_control_plane_api::object::{Key, Object};
use serde_json::Value;

use super::client::ActorClient;
pub(crate) use host_port::HostPort;

const CLAIMS: &str = "persistentvolumeclaims";

/// Positions of the selectable fields that actors need without decoding a pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct PodFields {
    node: Option<usize>,
    phase: Option<usize>,
}

impl PodFields {
    pub(super) fn new() -> Self {
        let fields = kinds::by_storage("pods").map_or(&[][..], |kind| &kind.fields);
        let position = |label: &str| fields.iter().position(|field| field.label == label);
        Self {
            node: position("spec.nodeName"),
            phase: position("status.phase"),
        }
    }

    /// Returns the node of a pod, or an empty string.
    pub(super) fn node(self, pod: &Object) -> &str {
        read(pod, self.node)
    }

    /// Reports whether a pod has finished.
    pub(super) fn is_over(self, pod: &Object) -> bool {
        matches!(read(pod, self.phase), "Succeeded" | "Failed")
    }
}

fn read(pod: &Object, position: Option<usize>) -> &str {
    position
        .and_then(|position| pod.fields.get(position))
        .map_or("", |text| text)
}

/// Returns the names of a pod's claims, including those of its ephemeral volumes.
pub(super) fn claims_of(pod: &Value) -> impl Iterator<Item = String> {
    let name = pod.pointer("/metadata/name").and_then(Value::as_str);
    list_at(pod, "/spec/volumes").filter_map(move |volume| {
        if volume.get("ephemeral").is_some() {
            let volume = volume.get("name")?.as_str()?;
            return Some(format!("{}-{volume}", name?));
        }
        let claim = volume.pointer("/persistentVolumeClaim/claimName")?;
        claim.as_str().map(str::to_owned)
    })
}

/// Returns the key of a claim.
pub(super) fn claim_key(namespace: &str, name: &str) -> Key {
    Key::of(CLAIMS, namespace, name)
}

/// Returns a pod's first unbound claim.
pub(super) fn unbound_claim(client: &ActorClient, pod: &Value, namespace: &str) -> Option<Key> {
    claims_of(pod)
        .map(|name| claim_key(namespace, &name))
        .find(|key| !client.get(key).is_some_and(|claim| is_bound(&claim)))
}

/// Reports whether a claim is bound.
pub(super) fn is_bound(claim: &Object) -> bool {
    let claim = claim.value();
    claim.pointer("/status/phase").and_then(Value::as_str) == Some("Bound")
}

/// Waiting pods by the object they wait for.
#[derive(Debug, Default)]
pub(super) struct Waiters(BTreeMap<Key, BTreeSet<Key>>);

impl Waiters {
    /// Makes a pod wait for an object.
    pub(super) fn wait(&mut self, object: Key, pod: &Key) {
        self.0.entry(object).or_default().insert(pod.clone());
    }

    /// Removes and returns the pods that wait for an object.
    pub(super) fn take(&mut self, object: &Key) -> BTreeSet<Key> {
        self.0.remove(object).unwrap_or_default()
    }
}
