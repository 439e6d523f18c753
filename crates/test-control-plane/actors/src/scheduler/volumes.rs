//! Placement restrictions of a pod's claims.

use kube_test_control_plane_api::object::Key;
use serde_json::Value;

use super::cache::Node;
use super::verdict::{Verdict, unavailable_for};
use crate::client::ActorClient;
use crate::nodes::affinity;
use crate::pods::{claim_key, claims_of};
use crate::volume_binder::{BindingMode, SELECTED_NODE, VolumeBinderConfig, fits};

/// The claims of a pod that restrict its placement.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// The bound volumes.
    bound: Vec<Value>,
    /// The matching volumes of each claim that only an existing volume can satisfy.
    candidates: Vec<Vec<Value>>,
    /// Claims without the selected node yet.
    pub(super) select: Vec<Key>,
    /// Unbound claims.
    pub(super) wait: Vec<Key>,
}

/// A claim that makes a pod unschedulable.
#[derive(Debug)]
pub(super) struct UnschedulableClaim {
    claim: Key,
    reason: String,
}

impl UnschedulableClaim {
    pub(super) fn verdict(self, nodes: usize) -> Verdict {
        Verdict::NowhereWithout(self.claim, unavailable_for(nodes, &self.reason))
    }
}

/// Evaluates the claims of a pod.
pub(super) fn evaluate_claims(
    client: &ActorClient,
    config: &VolumeBinderConfig,
    pod_key: &Key,
    pod: &Value,
) -> Result<Claims, UnschedulableClaim> {
    let mut claims = Claims::default();
    for name in claims_of(pod) {
        let key = claim_key(&pod_key.namespace, &name);
        let refuse = |claim: &Key, reason: String| UnschedulableClaim {
            claim: claim.clone(),
            reason,
        };
        let Some(object) = client.get(&key) else {
            let reason = format!("persistentvolumeclaim {name:?} not found");
            return Err(refuse(&key, reason));
        };
        if object.deleting {
            let reason = format!("persistentvolumeclaim {name:?} is being deleted");
            return Err(refuse(&key, reason));
        }
        let claim = object.value();
        let text = |pointer: &str| claim.pointer(pointer).and_then(Value::as_str);
        let phase = text("/status/phase").unwrap_or_default();
        if phase == "Lost" {
            let reason = format!(
                "persistentvolumeclaim {name:?} bound to non-existent \
                 persistentvolume {:?}",
                text("/spec/volumeName").unwrap_or_default()
            );
            return Err(refuse(&key, reason));
        }
        if phase == "Bound" {
            let volume = Key::of(
                "persistentvolumes",
                "",
                text("/spec/volumeName").unwrap_or_default(),
            );
            claims.bound.extend(client.get(&volume).map(|v| v.value()));
            continue;
        }
        let class = config.class(client, &claim);
        if class.binding == BindingMode::Immediate {
            let reason = "pod has unbound immediate PersistentVolumeClaims";
            return Err(refuse(&key, reason.to_owned()));
        }
        let annotations = claim.pointer("/metadata/annotations");
        let is_selected = annotations.is_some_and(|notes| notes.get(SELECTED_NODE).is_some());
        if !is_selected {
            claims.select.push(key.clone());
        }
        if !class.provisions && !is_selected {
            let volumes = client.list("persistentvolumes", "");
            let volumes = volumes.iter().filter(|v| !v.deleting).map(|v| v.value());
            let free = |volume: &Value| {
                volume.pointer("/status/phase").and_then(Value::as_str) == Some("Available")
            };
            let found = volumes.filter(|volume| free(volume) && fits(volume, &claim));
            claims.candidates.push(found.collect());
        }
        claims.wait.push(key);
    }
    Ok(claims)
}

impl Claims {
    /// Returns the reason of the claims against a node, if any.
    pub(super) fn refuse(&self, name: &str, node: &Node) -> Option<String> {
        let allows = |volume: &Value| {
            let terms = volume.pointer("/spec/nodeAffinity/required");
            terms.is_none_or(|terms| affinity::matches_terms(terms, &node.labels, name))
        };
        if !self.bound.iter().all(allows) {
            let reason = "node(s) didn't match PersistentVolume's node affinity";
            return Some(reason.to_owned());
        }
        let found = |volumes: &Vec<Value>| volumes.iter().any(allows);
        (!self.candidates.iter().all(found))
            .then(|| "node(s) didn't find available persistent volumes to bind".to_owned())
    }
}
