//! An object that the cache can hold.

use std::sync::Arc;

use kube_apimachinery::json::Document;
use kube_apimachinery::protobuf::WireError;

use super::key::IndexKey;
use super::shared_parts::SharedParts;

/// A decoder of protobuf messages.
pub type FromProtobuf<K> = fn(&[u8]) -> Result<K, WireError>;

/// An object that can be cached: a compact type with only the fields that the controller reads.
pub trait CachedObject: Send + Sync + Sized + 'static {
    /// The namespace; empty for an object without one.
    fn namespace(&self) -> &str;
    /// The name.
    fn name(&self) -> &str;
    /// The uid.
    fn uid(&self) -> &str;
    /// The resource version that the server assigned.
    fn resource_version(&self) -> &str;
    /// Decodes the object from a protobuf message of its kind; `None` for types that read only JSON.
    /// After an error, the object is requested as JSON.
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = None;
    /// Reads the object from the server's JSON. Items of a list carry no `kind` or `apiVersion`.
    fn decode(json: &str) -> Result<Self, serde_json::Error>;
    /// Decodes the object from `json`, a part of a document. Types that need the original bytes
    /// override it.
    fn decode_part(document: &Document, json: &str) -> Result<Self, serde_json::Error> {
        let _ = document;
        Self::decode(json)
    }
    /// Shares parts of the object with other objects. Types with such parts override it.
    fn share_parts(&mut self, parts: &SharedParts) {
        let _ = parts;
    }
    /// Decodes the next state of an object from `json`, a part of a document, and shares its
    /// parts. `last` returns the object's last state by namespace and name; types with large parts
    /// that rarely change override this to take them from there.
    fn decode_next(
        document: &Document,
        json: &str,
        parts: &SharedParts,
        last: &dyn Fn(&str, &str) -> Option<Arc<Self>>,
    ) -> Result<Self, serde_json::Error> {
        let _ = last;
        let mut object = Self::decode_part(document, json)?;
        object.share_parts(parts);
        Ok(object)
    }
    /// Adds the object's index keys to `out`, each at most once. Every key belongs to the object's
    /// namespace.
    fn index_values(&self, out: &mut Vec<IndexKey>);
}
