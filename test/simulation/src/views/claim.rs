//! Claims.

use jiff::Timestamp;
use kube_apimachinery::quantity::Quantity;
use serde_json::Value;

use super::{Owner, Pod, Set};

/// A PersistentVolumeClaim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Owners.
    pub owners: Vec<Owner>,
    /// True if it is being deleted.
    pub terminating: bool,
    /// Label that the selectors of sets match.
    pub app: String,
    /// Storage class.
    pub class: String,
    /// Requested bytes.
    pub request: i64,
    /// Bytes of the volume.
    pub capacity: i64,
    /// True if it has a volume.
    pub bound: bool,
    /// The time since which its file system waits for a pod to start, if it does.
    pub awaits_node: Option<Timestamp>,
}

impl Claim {
    /// Reads a claim.
    pub fn read(value: &Value) -> Self {
        Self {
            name: super::text(value, "/metadata/name"),
            uid: super::text(value, "/metadata/uid"),
            owners: super::owners(value),
            terminating: super::is_terminating(value),
            app: super::text(value, "/metadata/labels/app"),
            class: super::text(value, "/spec/storageClassName"),
            request: bytes(value, "/spec/resources/requests/storage"),
            capacity: bytes(value, "/status/capacity/storage"),
            bound: super::text(value, "/status/phase") == "Bound",
            awaits_node: pending_since(value),
        }
    }

    /// Reports whether its volume is smaller than requested.
    pub fn is_growing(&self) -> bool {
        self.bound && self.capacity < self.request
    }
}

fn pending_since(value: &Value) -> Option<Timestamp> {
    let conditions = value.pointer("/status/conditions")?.as_array()?;
    let is_pending = |it: &&Value| it["type"] == "FileSystemResizePending";
    let pending = conditions.iter().find(is_pending)?;
    super::text(pending, "/lastTransitionTime").parse().ok()
}

/// Returns an amount in bytes.
fn bytes(value: &Value, pointer: &str) -> i64 {
    let quantity: Option<Quantity> = super::text(value, pointer).parse().ok();
    quantity.map_or(0, |it| it.value())
}

/// Reports whether an owner is the set, the pod, or an earlier one of the same name.
pub fn is_named_as(owner: &Owner, pod: &Pod, set: &Set) -> bool {
    match owner.kind.as_str() {
        "StatefulSet" => owner.name == set.name,
        "Pod" => owner.name == pod.name,
        _ => false,
    }
}
