//! A StatefulSet as the cache keeps it: a typed view beside the verbatim template.

mod convert;
mod spec;
mod status;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use serde::Deserialize;
use serde_json::value::RawValue;
use statefulset_client::indexer::{CachedObject, IndexKey};
use statefulset_client::recorder::ObjectReference;

use crate::decode::{RawMeta, or_default};

pub use spec::{
    ClaimRetentionPolicy, ClaimRetentionPolicyType, PodManagementPolicy, RollingUpdate,
    StatefulSetSpec, UpdateStrategy, UpdateStrategyType,
};
pub use status::StatefulSetStatus;
pub use template::{ClaimTemplate, PodTemplate};

/// The controller's kind.
pub const KIND: &str = "StatefulSet";
/// The controller's API version.
pub const API_VERSION: &str = "apps/v1";

/// A stored StatefulSet.
///
/// Cloning is cheap: whatever may be large is shared.
#[derive(Clone, Debug)]
pub struct StatefulSet {
    /// Metadata.
    pub metadata: Arc<SetMetadata>,
    /// What the user wants.
    pub spec: StatefulSetSpec,
    /// What was last recorded.
    pub status: Arc<StatefulSetStatus>,
}

/// The metadata of a set: typed where decisions need it, and complete for the status write.
#[derive(Clone, Debug)]
pub struct SetMetadata {
    /// Name.
    pub name: Box<str>,
    /// Namespace.
    pub namespace: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Resource version of the copy at hand.
    pub resource_version: Box<str>,
    /// Generation of the spec.
    pub generation: i64,
    /// When the server stored it first.
    pub creation_timestamp: Option<Timestamp>,
    /// When deletion was asked for, for a set that is going away.
    pub deletion_timestamp: Option<Timestamp>,
    /// All annotations; revisions record them.
    pub annotations: BTreeMap<String, String>,
    /// Whether the set nests so deep that reading its templates needs a large stack.
    pub is_deep: bool,
    /// The whole metadata as the server sent it, without `managedFields`.
    pub raw: Box<RawValue>,
}

impl StatefulSet {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.metadata.namespace, &self.metadata.name)
    }

    /// Namespace.
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// UID.
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// Whether the set is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The controlling reference that the set's dependents carry.
    pub fn controller_reference(&self) -> OwnerReference {
        OwnerReference::new_controller(API_VERSION, KIND, self.name(), self.uid())
    }

    /// The reference that events about the set carry.
    pub fn object_reference(&self) -> ObjectReference {
        ObjectReference {
            kind: KIND.to_owned(),
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
            api_version: API_VERSION.to_owned(),
            resource_version: self.metadata.resource_version.to_string(),
        }
    }

    /// The same set with another pod template.
    #[must_use]
    pub fn with_template(&self, template: PodTemplate) -> Self {
        let mut set = self.clone();
        set.spec.template = template;
        set
    }
}

#[derive(Deserialize)]
struct RawSet<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
    spec: StatefulSetSpec,
    #[serde(default, deserialize_with = "or_default")]
    status: StatefulSetStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawAnnotations {
    #[serde(deserialize_with = "or_default")]
    annotations: BTreeMap<String, String>,
}

impl CachedObject for StatefulSet {
    fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    fn name(&self) -> &str {
        &self.metadata.name
    }

    fn uid(&self) -> &str {
        &self.metadata.uid
    }

    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }

    fn decode(json: &str) -> Result<Self, serde_json::Error> {
        let raw: RawSet<'_> = serde_json::from_str(json)?;
        let metadata: RawMeta = serde_json::from_str(raw.metadata.get())?;
        let RawAnnotations { annotations } = serde_json::from_str(raw.metadata.get())?;
        Ok(Self {
            metadata: Arc::new(SetMetadata {
                name: metadata.name,
                namespace: metadata.namespace,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                generation: metadata.generation,
                creation_timestamp: metadata.creation_timestamp,
                deletion_timestamp: metadata.deletion_timestamp,
                annotations,
                is_deep: kube_apimachinery::json::is_deep(json),
                raw: template::without_member(raw.metadata, "managedFields")?,
            }),
            spec: raw.spec,
            status: Arc::new(raw.status),
        })
    }

    fn index_values(&self, out: &mut Vec<IndexKey>) {
        out.push(IndexKey::namespace(&self.metadata.namespace));
    }
}

#[cfg(test)]
mod tests;
