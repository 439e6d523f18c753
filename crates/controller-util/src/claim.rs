//! PersistentVolumeClaims as cached: owners, deletion time and storage.

use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use serde::Deserialize;
use serde_json::value::RawValue;
use statefulset_client::cache::indexer::{CachedObject, IndexKey};

use crate::decode::{RawMeta, null_managed_fields};

mod storage;

pub use storage::{ClaimPhase, ClaimStorage};

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
    /// Requested and actual size, and the state of an expansion.
    pub storage: ClaimStorage,
}

impl Claim {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}

#[derive(Deserialize)]
struct RawClaim<'a> {
    metadata: RawMeta,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
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
        let json = null_managed_fields(json);
        let RawClaim {
            metadata,
            spec,
            status,
        } = serde_json::from_str(&json)?;
        Ok(Self {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            owner_references: metadata.owner_references,
            deletion_timestamp: metadata.deletion_timestamp,
            storage: ClaimStorage::of(spec, status),
        })
    }

    fn index_values(&self, _out: &mut Vec<IndexKey>) {}
}
