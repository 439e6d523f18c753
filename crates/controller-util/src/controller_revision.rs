//! ControllerRevisions as cached, with the recorded bytes of their data.

use jiff::Timestamp;
use kube_apimachinery::json::{self, Document};
use kube_apimachinery::labels::Labels;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::{OwnerReference, controller_of};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;
use statefulset_client::cache::indexer::{CachedObject, IndexKey, SharedParts, SharedText};

use crate::decode::{RawMeta, or_default};
use crate::index::controller_index_key;

/// Label with the hash in a revision's first candidate name.
pub const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// A stored revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerRevision {
    /// Name.
    pub name: Box<str>,
    /// Namespace.
    pub namespace: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Resource version of this copy.
    pub resource_version: Box<str>,
    /// Creation time; breaks ties between equal revision numbers.
    pub creation_timestamp: Option<Timestamp>,
    /// All labels.
    pub labels: Labels,
    /// The controlling owner reference, if any.
    pub controller: Option<OwnerReference>,
    /// Revision number; higher is newer.
    pub revision: i64,
    /// Recorded data as sent by the server; empty without data. Invalid UTF-8 and unpaired
    /// surrogates are replaced, as in Go's decoder.
    pub data: SharedText,
    /// True if part of the data was replaced, so that it differs from the recorded bytes.
    pub is_data_replaced: bool,
    /// True if applying the data needs a large stack, because it nests deep.
    pub is_deep: bool,
}

impl ControllerRevision {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }

    /// Returns true if exactly these bytes are recorded.
    pub fn records(&self, data: &str) -> bool {
        self.data == *data && !self.is_data_replaced
    }
}

#[derive(Deserialize)]
struct RawRevision<'a> {
    metadata: RawMeta,
    #[serde(default, deserialize_with = "or_default")]
    revision: i64,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// Returns the bytes of a stored revision with another number; every other byte stays.
///
/// # Errors
///
/// The document is not an object with a `revision`.
pub fn renumbered(document: &Document, revision: i64) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Numbered<'a> {
        #[serde(borrow)]
        revision: &'a RawValue,
    }
    let numbered: Numbered<'_> = serde_json::from_str(document.text())?;
    document
        .splice(numbered.revision.get(), &revision.to_string())
        .ok_or_else(|| serde_json::Error::custom("the number is not part of the text"))
}

impl CachedObject for ControllerRevision {
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
        Self::decode_part(&Document::default(), json)
    }

    fn decode_part(document: &Document, json: &str) -> Result<Self, serde_json::Error> {
        let raw: RawRevision<'_> = serde_json::from_str(json)?;
        let data = raw.data.map_or("", RawValue::get);
        Ok(Self {
            controller: controller_of(&raw.metadata.owner_references).cloned(),
            name: raw.metadata.name,
            namespace: raw.metadata.namespace,
            uid: raw.metadata.uid,
            resource_version: raw.metadata.resource_version,
            creation_timestamp: raw.metadata.creation_timestamp,
            labels: raw.metadata.labels,
            revision: raw.revision,
            is_data_replaced: !document.is_exact(data),
            is_deep: json::is_deep(data),
            data: data.into(),
        })
    }

    fn share_parts(&mut self, parts: &SharedParts) {
        if let Some(data) = self.data.shared(&parts.texts) {
            self.data = data;
        }
    }

    fn index_values(&self, out: &mut Vec<IndexKey>) {
        out.push(controller_index_key(
            &self.namespace,
            self.controller.as_ref(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_keeps_every_byte() {
        let json =
            r#"{"metadata":{"name":"web-1"},"data":{ "b" : "\u003c", "a":1.0 },"revision":3}"#;
        let revision = ControllerRevision::decode(json).unwrap();
        assert_eq!(revision.data.to_str(), r#"{ "b" : "\u003c", "a":1.0 }"#);
        assert_eq!(revision.revision, 3);
    }

    #[test]
    fn replaced_data_does_not_count_as_recorded() {
        for (data, is_replaced) in [(&b"\xff"[..], true), (b"\\ud800", true), (b"x", false)] {
            let json = [
                br#"{"metadata":{"name":"\ud800"},"data":{"a":""#,
                data,
                br#""}}"#,
            ]
            .concat();
            let document = Document::new(json);
            let revision = ControllerRevision::decode_part(&document, document.text()).unwrap();
            assert_eq!(revision.is_data_replaced, is_replaced);
            assert_eq!(revision.records(&revision.data.to_str()), !is_replaced);
        }
    }

    #[test]
    fn renumbering_keeps_every_other_byte() {
        let stored = |revision: &str| {
            let before = br#"{ "revision" : "#;
            let after = b",\"data\":{\"revision\":1,\"a\":\"\xff\\ud800\"},\"future\":1.0}";
            [before, revision.as_bytes(), after].concat()
        };
        let document = Document::new(stored("-1"));
        assert_eq!(renumbered(&document, 12).unwrap(), stored("12"));
    }

    #[test]
    fn renumbering_requires_a_revision() {
        for text in ["{}", "[]", r#"{"revision":1,"revision":2}"#] {
            assert!(renumbered(&Document::from(text.to_owned()), 2).is_err());
        }
    }

    #[test]
    fn large_data_is_shared_with_other_revisions() {
        let data = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
        let json = format!(r#"{{"metadata":{{"name":"web-1"}},"data":{data}}}"#);
        let whole = ControllerRevision::decode(&json).unwrap();
        let (mut one, mut other) = (whole.clone(), whole.clone());
        let pool = SharedParts::default();
        one.share_parts(&pool);
        assert!(!one.data.is_same(&whole.data));
        other.share_parts(&pool);
        assert!(one.data.is_same(&other.data));
        assert_eq!(one, whole);
        assert!(one.records(&data));
    }

    #[test]
    fn absent_data_is_empty() {
        let revision = ControllerRevision::decode(r#"{"metadata":{"name":"web-1"}}"#).unwrap();
        assert_eq!(revision.data.to_str(), "");
    }
}
