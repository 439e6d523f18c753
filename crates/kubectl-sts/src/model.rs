//! The fields of Kubernetes objects that the answers need; all others are skipped, so that large
//! clusters fit into memory.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use budget::Budget;
pub use claim::{Claim, Volume};
pub use event::Event;
pub use lease::Lease;
pub use managed::ManagedSet;
pub use node::Node;
pub use pod::{
    Condition, Container, ContainerState, ContainerStatus, ContainerTerminated, Pod, Probe,
    median_start,
};
pub use quota::Quota;
pub use set::{ClaimTemplate, Set, SetSpec, SetStatus, UpdateStrategy};

mod budget;
mod claim;
mod event;
mod lease;
mod managed;
mod node;
mod pod;
mod quota;
mod set;

/// Label of a pod with the name of its revision.
const REVISION_LABEL: &str = "controller-revision-hash";

/// The metadata of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Uid.
    pub uid: String,
    /// Generation of the spec.
    pub generation: i64,
    /// Time of the creation.
    #[serde(deserialize_with = "time")]
    pub creation_timestamp: Option<Timestamp>,
    /// Time at which the deletion is due.
    #[serde(deserialize_with = "time")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Seconds from the request for the deletion until it is due.
    pub deletion_grace_period_seconds: Option<i64>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Owners.
    pub owner_references: Vec<Owner>,
    /// Finalizers.
    pub finalizers: Vec<String>,
}

/// An owner of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Owner {
    /// Its group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// True if it controls the object.
    pub controller: bool,
}

impl Metadata {
    /// The time of the request for the deletion.
    pub fn deleted_at(&self) -> Option<Timestamp> {
        let grace = self.deletion_grace_period_seconds.unwrap_or_default();
        let due = self.deletion_timestamp?;
        due.checked_sub(SignedDuration::from_secs(grace)).ok()
    }

    /// The owner that controls the object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// Reports whether the object with this uid controls this one.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|owner| owner.uid == uid)
    }

    /// The name of the revision of a pod; empty without the label.
    pub fn revision(&self) -> &str {
        self.labels.get(REVISION_LABEL).map_or("", String::as_str)
    }
}

/// A `ControllerRevision`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Revision {
    /// Metadata.
    pub metadata: Metadata,
    /// Its number.
    pub revision: i64,
    /// The recorded fields of the set.
    pub data: Value,
}

/// Reads a time; one that can't be parsed is unknown.
pub(crate) fn time<'de, D: Deserializer<'de>>(decoder: D) -> Result<Option<Timestamp>, D::Error> {
    let text: Option<String> = Option::deserialize(decoder)?;
    Ok(text.and_then(|text| text.parse().ok()))
}
