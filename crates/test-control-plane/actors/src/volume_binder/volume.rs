//! Volumes, claims and their matching.

use kube_apimachinery::quantity::Quantity;
use kube_apimachinery::selector::{LabelSelector, Selector};
use kube_test_control_plane_api::members::text_at;
use kube_test_control_plane_api::object::{Key, Object};
use serde_json::{Map, Value, json};

use super::classes::{PROVISIONER, VolumeClass};

/// The annotation with the node that the scheduler chose for a claim.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Returns an annotation, or an empty string.
pub(super) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    let annotations = object.pointer("/metadata/annotations");
    let text = annotations.and_then(|annotations| annotations.get(name)?.as_str());
    text.unwrap_or_default()
}

/// Reservation of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reserved {
    /// Free for any claim.
    No,
    /// Reserved for this claim.
    Ours,
    /// Reserved for another claim.
    Other,
}

/// Reports whether a volume is reserved for a claim.
pub(super) fn reserved(volume: &Value, key: &Key, uid: &str) -> Reserved {
    let Some(claim) = volume.pointer("/spec/claimRef").filter(|c| !c.is_null()) else {
        return Reserved::No;
    };
    let wanted = text_at(claim, "/uid");
    let ours = text_at(claim, "/namespace") == &*key.namespace
        && text_at(claim, "/name") == &*key.name
        && (wanted.is_empty() || wanted == uid);
    if ours {
        Reserved::Ours
    } else {
        Reserved::Other
    }
}

/// Returns the key of the claim in a volume's reference.
pub(super) fn claim_of(volume: &Value) -> Option<Key> {
    let claim = volume.pointer("/spec/claimRef").filter(|c| !c.is_null())?;
    let (namespace, name) = (text_at(claim, "/namespace"), text_at(claim, "/name"));
    Some(crate::pods::claim_key(namespace, name))
}

/// Returns an amount of storage in bytes.
pub(super) fn size(value: &Value, pointer: &str) -> i64 {
    let quantity: Option<Quantity> = text_at(value, pointer).parse().ok();
    quantity.map_or(0, |quantity| quantity.value())
}

/// Reports whether a volume matches a claim.
pub(crate) fn fits(volume: &Value, claim: &Value) -> bool {
    let modes = |value: &Value| -> Vec<String> {
        let list = value.pointer("/spec/accessModes").and_then(Value::as_array);
        let list = list.into_iter().flatten().filter_map(Value::as_str);
        list.map(str::to_owned).collect()
    };
    let offered = modes(volume);
    let same = |pointer: &str| text_at(volume, pointer) == text_at(claim, pointer);
    text_at(volume, "/spec/storageClassName") == text_at(claim, "/spec/storageClassName")
        && same("/spec/volumeMode")
        && size(volume, "/spec/capacity/storage") >= size(claim, "/spec/resources/requests/storage")
        && modes(claim).iter().all(|mode| offered.contains(mode))
        && is_selected(volume, claim)
        && allows_node(volume, annotation(claim, SELECTED_NODE))
}

fn is_selected(volume: &Value, claim: &Value) -> bool {
    let Some(selector) = claim.pointer("/spec/selector").filter(|s| !s.is_null()) else {
        return true;
    };
    let labels = volume
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let labels = labels.cloned().unwrap_or_else(Map::new);
    serde_json::from_value::<LabelSelector>(selector.clone())
        .ok()
        .and_then(|selector| Selector::from_label_selector(Some(&selector)).ok())
        .is_some_and(|selector| selector.matches(&labels))
}

/// Reports whether a volume's node affinity allows a node's host name; an empty name matches any
/// node.
fn allows_node(volume: &Value, node: &str) -> bool {
    let terms = volume.pointer("/spec/nodeAffinity/required");
    let Some(terms) = terms.filter(|_| !node.is_empty()) else {
        return true;
    };
    let labels = json!({"kubernetes.io/hostname": node});
    let labels = labels.as_object().cloned().unwrap_or_default();
    crate::nodes::affinity::matches_terms(terms, &labels, node)
}

/// Returns the volume provisioned for a claim.
pub(super) fn provisioned(claim: &Value, key: &Key, object: &Object, class: &VolumeClass) -> Value {
    let uid = &*object.uid;
    let mut volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": format!("pvc-{uid}"),
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
        },
        "spec": {
            "capacity": {"storage": claim.pointer("/spec/resources/requests/storage")},
            "accessModes": claim.pointer("/spec/accessModes"),
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": *key.namespace,
                "name": *key.name,
                "uid": uid,
                "resourceVersion": object.resource_version.to_string(),
            },
            "csi": {"driver": PROVISIONER, "volumeHandle": format!("pvc-{uid}")},
            "persistentVolumeReclaimPolicy": class.reclaim,
            "volumeMode": text_at(claim, "/spec/volumeMode"),
        },
    });
    let class_name = text_at(claim, "/spec/storageClassName");
    if !class_name.is_empty() {
        volume["spec"]["storageClassName"] = json!(class_name);
    }
    let node = annotation(claim, SELECTED_NODE);
    if class.local && !node.is_empty() {
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [{
            "matchExpressions": [{
                "key": "kubernetes.io/hostname",
                "operator": "In",
                "values": [node],
            }],
        }]}});
    }
    volume
}
