//! Claims.

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
}

impl Claim {
    /// Reads a claim.
    pub fn read(value: &Value) -> Self {
        Self {
            name: super::text(value, "/metadata/name"),
            uid: super::text(value, "/metadata/uid"),
            owners: super::owners(value),
            terminating: super::is_terminating(value),
        }
    }
}

/// Reports whether an owner is the set, the pod, or an earlier one of the same name.
pub fn is_named_as(owner: &Owner, pod: &Pod, set: &Set) -> bool {
    match owner.kind.as_str() {
        "StatefulSet" => owner.name == set.name,
        "Pod" => owner.name == pod.name,
        _ => false,
    }
}
