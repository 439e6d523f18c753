//! PersistentVolumeClaims as cached: owners and deletion time.

use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use serde::Deserialize;
use statefulset_client::cache::indexer::{CachedObject, IndexKey};

use crate::decode::{RawMeta, null_managed_fields};

/// A stored claim, reduced to the fields that decisions need.
///
/// It is never written back: updates start from the live object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Name.
    pub name: Box<str>,
    /// Namespace.
    pub namespace: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Resource version of this copy.
    pub resource_version: Box<str>,
    /// All owner references, in the object's order.
    pub owner_references: Box<[OwnerReference]>,
    /// Time of the deletion request, for a terminating claim.
    pub deletion_timestamp: Option<Timestamp>,
}

impl Claim {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}

#[derive(Deserialize)]
struct RawClaim {
    metadata: RawMeta,
}

impl CachedObject for Claim {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn decode(json: &str) -> Result<Self, serde_json::Error> {
        let RawClaim { metadata } = serde_json::from_str(&null_managed_fields(json))?;
        Ok(Self {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            owner_references: metadata.owner_references,
            deletion_timestamp: metadata.deletion_timestamp,
        })
    }

    fn index_values(&self, _out: &mut Vec<IndexKey>) {}
}
