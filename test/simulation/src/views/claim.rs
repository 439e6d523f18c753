//! Claims.

use serde_json::Value;

use super::{Pod, Set};

/// An owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// True if the owner controls the object.
    pub controller: bool,
}

impl Owner {
    /// Reports whether this is the set, the pod, or an earlier one of the same name.
    pub fn is_named_as(&self, pod: &Pod, set: &Set) -> bool {
        match self.kind.as_str() {
            "StatefulSet" => self.name == set.name,
            "Pod" => self.name == pod.name,
            _ => false,
        }
    }
}

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
