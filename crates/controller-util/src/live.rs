//! Live objects, read from the API server to be edited and written back whole.

use kube_apimachinery::json::parse;
use serde::de::Error as _;
use serde_json::Value;
use statefulset_client::cache::indexer::CachedObject;
use statefulset_client::error::Error;

use crate::consistency::TrackedResource;
use crate::decode::{null_managed_fields, without_managed_fields};

/// A live object: the compact view for decisions, and the complete JSON for edits.
///
/// Existing objects are PUT in this form only.
#[derive(Clone, Debug)]
pub struct Live<K> {
    /// View for decisions; edits of [`Live::json`] don't update it.
    pub object: K,
    /// The complete object, without `managedFields`.
    pub json: Value,
}

impl<K: CachedObject> Live<K> {
    /// Decodes a server's response, without `managedFields`: these may nest to any depth, contain
    /// any number and repeat a field, none of which a JSON value can represent.
    ///
    /// # Errors
    ///
    /// The text is not an object of this kind.
    pub fn decode(text: &str) -> Result<Self, serde_json::Error> {
        let text = null_managed_fields(text);
        let object = without_managed_fields(&text)?;
        Ok(Self {
            object: K::decode(&text)?,
            json: parse(&object.to_string()).map_err(serde_json::Error::custom)?,
        })
    }

    /// Returns the object if it has the uid of the one to change; `kind` is its name in texts.
    ///
    /// # Errors
    ///
    /// A conflict, if an object with another uid has taken the name.
    pub fn with_uid(self, uid: &str, resource: TrackedResource, kind: &str) -> Result<Self, Error> {
        if self.object.uid() == uid {
            return Ok(self);
        }
        let reason = format!(
            "the {kind} was recreated; please apply your changes to the latest version and try again"
        );
        let resource = resource.resource().group_resource();
        Err(Error::conflict(resource, self.object.name(), &reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Claim;

    #[test]
    fn managed_fields_are_left_out() {
        for fields in [
            format!("{}{}", "[".repeat(300), "]".repeat(300)),
            "1e400".to_owned(),
            "1.50".to_owned(),
            r#"{"f:a":{},"f:a":{}}"#.to_owned(),
            "{}".to_owned(),
        ] {
            let text = format!(
                r#"{{"metadata":{{"name":"data-web-0","managedFields":[{{"fieldsV1":{fields}}}],"labels":{{"a":"b"}}}},"spec":{{"x":1}}}}"#
            );
            let live = Live::<Claim>::decode(&text).unwrap();
            assert_eq!(
                live.json,
                serde_json::json!({"metadata": {"name": "data-web-0", "labels": {"a": "b"}}, "spec": {"x": 1}})
            );
        }
    }
}
