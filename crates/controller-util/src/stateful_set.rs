//! StatefulSets as cached: a typed view and the server's text.

mod claim_template;
mod conditions;
mod convert;
mod members;
mod part;
mod selector;
mod spec;
mod status;
mod template;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::json::{Document, is_deep, to_raw};
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;
use serde_json::value::RawValue;
use statefulset_client::cache::indexer::{CachedObject, IndexKey, SharedParts, SharedText};
use statefulset_client::recorder::ObjectReference;

use crate::decode::{RawMeta, null_managed_fields, or_default, without_managed_fields};

pub use claim_template::ClaimTemplate;
pub use conditions::{Condition, Conditions, RecreateProgress};
pub use convert::ConvertError;
pub use members::TemplateMembers;
pub use selector::SetSelector;
pub use spec::{
    ClaimRetentionPolicy, ClaimRetentionPolicyType, PodManagementPolicy, RollingUpdate,
    StatefulSetSpec, UpdateStrategy, UpdateStrategyType,
};
pub use status::StatefulSetStatus;
pub use template::{AppliedRevision, PodTemplate, TemplateMemo};

/// The controller's kind.
pub const KIND: &str = "StatefulSet";
/// The controller's API version.
pub const API_VERSION: &str = "apps/v1";

/// A stored StatefulSet.
///
/// Clones are cheap: they share all large parts.
#[derive(Clone, Debug)]
pub struct StatefulSet {
    /// Metadata.
    pub metadata: Arc<SetMetadata>,
    /// Desired state.
    pub spec: StatefulSetSpec,
    /// Last recorded status.
    pub status: Arc<StatefulSetStatus>,
    /// The set as sent by the server, without `managedFields`, spec and status, and without the
    /// bracket at its end.
    head: Arc<str>,
    /// The spec as sent by the server.
    spec_text: SharedText,
}

/// Metadata of a set, to the extent that decisions need it.
#[derive(Clone, Debug)]
pub struct SetMetadata {
    /// Name.
    pub name: Box<str>,
    /// Namespace.
    pub namespace: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Resource version of this copy.
    pub resource_version: Box<str>,
    /// Generation of the spec.
    pub generation: i64,
    /// Creation time.
    pub creation_timestamp: Option<Timestamp>,
    /// Time of the deletion request, for a set that is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// All annotations; revisions record them.
    pub annotations: BTreeMap<String, String>,
    /// True if reading the templates needs a large stack, because the set nests deep.
    pub is_deep: bool,
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

    /// Returns true if the set is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Controller reference for the set's dependents.
    pub fn controller_reference(&self) -> OwnerReference {
        OwnerReference::new_controller(API_VERSION, KIND, self.name(), self.uid())
    }

    /// Index key of the objects that the set controls:
    /// [`controller_index_key`](crate::index::controller_index_key) of
    /// [`controller_reference`](Self::controller_reference).
    pub fn owned_index_key(&self) -> IndexKey {
        IndexKey::controller(self.namespace(), KIND, self.name(), self.uid())
    }

    /// Object reference for events about the set.
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

    /// Length in bytes of the set as sent by the server, without `managedFields` and status.
    pub fn text_len(&self) -> usize {
        self.head.len() + self.spec_text.len()
    }

    /// The spec as sent by the server.
    pub fn spec_text(&self) -> &SharedText {
        &self.spec_text
    }

    /// Returns the set as sent by the server, with another status: the body of a status write. It
    /// has no `managedFields`; the server keeps its own.
    ///
    /// # Errors
    ///
    /// The status can't be encoded.
    pub fn with_status(&self, status: &StatefulSetStatus) -> Result<String, serde_json::Error> {
        let (head, spec) = (&self.head, self.spec_text.to_str());
        let status = serde_json::to_string(status)?;
        Ok(format!(r#"{head},"spec":{spec},"status":{status}}}"#))
    }

    /// Returns the set with another pod template.
    #[must_use]
    pub fn with_template(&self, template: PodTemplate) -> Self {
        let mut set = self.clone();
        set.spec.template = template;
        set
    }

    /// Returns the set with a revision's parts.
    #[must_use]
    pub fn with_revision(&self, applied: &AppliedRevision) -> Self {
        let Some(template) = &applied.template else {
            return self.clone();
        };
        let mut set = self.with_template(template.clone());
        if applied.replaces_strategy {
            // The revision keeps no update strategy, so no sync creates its pods.
            set.spec.update_strategy = UpdateStrategy::default();
        }
        set
    }
}

/// The parts of a set's JSON.
struct Parts<'a> {
    metadata: SetMetadata,
    status: StatefulSetStatus,
    head: String,
    spec: Cow<'a, RawValue>,
}

impl<'a> Parts<'a> {
    /// Takes an object apart. Adds kind and apiVersion, which list items lack, to the head; all other
    /// values keep their bytes.
    fn of(json: &'a str) -> Result<Self, serde_json::Error> {
        let mut object = without_managed_fields(json)?;
        let status = object.remove("status");
        let status: Option<StatefulSetStatus> = match status {
            Some(status) => serde_json::from_str(status.get())?,
            None => None,
        };
        let missing = serde_json::Error::missing_field;
        let spec = object.remove("spec").ok_or_else(|| missing("spec"))?;
        for (member, value) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            object.set(member, to_raw(&Value::from(value)));
        }
        let metadata = object.get("metadata").ok_or_else(|| missing("metadata"))?;
        let mut metadata = SetMetadata::decode(metadata)?;
        let mut head = object.to_string();
        metadata.is_deep = is_deep(&head);
        head.pop();
        Ok(Self {
            metadata,
            status: status.unwrap_or_default(),
            head,
            spec,
        })
    }

    /// Adds the new spec.
    fn with_spec(mut self) -> Result<StatefulSet, serde_json::Error> {
        let text = SharedText::from(self.spec.get());
        let spec = StatefulSetSpec::decode(&text)?;
        self.metadata.is_deep |= is_deep(self.spec.get());
        Ok(self.into_set(spec, text))
    }

    /// Adds the spec of the last state, which had the same text.
    fn with_spec_of(mut self, last: &StatefulSet) -> StatefulSet {
        self.metadata.is_deep |= last.metadata.is_deep && is_deep(self.spec.get());
        self.into_set(last.spec.clone(), last.spec_text.clone())
    }

    fn into_set(self, spec: StatefulSetSpec, spec_text: SharedText) -> StatefulSet {
        StatefulSet {
            metadata: Arc::new(self.metadata),
            spec,
            status: Arc::new(self.status),
            head: self.head.into(),
            spec_text,
        }
    }
}

impl SetMetadata {
    fn decode(json: &RawValue) -> Result<Self, serde_json::Error> {
        let metadata: RawMeta = serde_json::from_str(json.get())?;
        let RawAnnotations { annotations } = serde_json::from_str(json.get())?;
        Ok(Self {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            creation_timestamp: metadata.creation_timestamp,
            deletion_timestamp: metadata.deletion_timestamp,
            annotations,
            is_deep: false,
        })
    }
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
        Parts::of(&null_managed_fields(json))?.with_spec()
    }

    /// Takes an unchanged spec, and results of syncs about an unchanged template, from the last
    /// state.
    fn decode_next(
        _: &Document,
        json: &str,
        shared: &SharedParts,
        last: &dyn Fn(&str, &str) -> Option<Arc<Self>>,
    ) -> Result<Self, serde_json::Error> {
        let json = null_managed_fields(json);
        let parts = Parts::of(&json)?;
        let last = last(&parts.metadata.namespace, &parts.metadata.name);
        let is_same = |last: &Arc<Self>| {
            let spec = parts.spec.get();
            last.spec_text.len() == spec.len() && last.spec_text.to_str() == spec
        };
        if let Some(last) = last.as_ref().filter(|last| is_same(last)) {
            return Ok(parts.with_spec_of(last));
        }
        let mut set = parts.with_spec()?;
        if let Some(last) = last {
            set.spec.template.inherit_memo(&last.spec.template);
        }
        set.share_parts(shared);
        Ok(set)
    }

    fn share_parts(&mut self, parts: &SharedParts) {
        if let Some(form) = self.spec_text.shared(&parts.texts) {
            self.spec.move_templates(&self.spec_text, &form);
            self.spec_text = form;
        }
    }

    fn index_values(&self, out: &mut Vec<IndexKey>) {
        out.push(IndexKey::namespace(&self.metadata.namespace));
    }
}

#[cfg(test)]
mod tests;
