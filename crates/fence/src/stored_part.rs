//! A policy or binding as the API server stores it.

use serde::Deserialize;
use serde_json::{Map, Value};
use statefulset_client::cache::indexer::{CachedObject, IndexKey};

/// A stored policy or binding.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPart {
    /// Name.
    pub name: Box<str>,
    /// UID: another one shows that the object was deleted in the meantime.
    pub uid: Box<str>,
    /// Resource version of this copy.
    pub resource_version: Box<str>,
    /// Version of the spec.
    pub generation: i64,
    /// True once a deletion was requested.
    pub is_deleting: bool,
    /// The spec with the server's defaults.
    pub spec: Value,
    /// The spec's version that the type checks of the server cover; none where no controller runs
    /// them.
    pub observed_generation: Option<i64>,
    /// True if the type checks found a mistake in an expression.
    pub has_warnings: bool,
}

#[derive(Deserialize)]
struct Raw {
    metadata: RawMetadata,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Option<RawStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMetadata {
    name: Box<str>,
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    deletion_timestamp: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    observed_generation: Option<i64>,
    type_checking: Option<Map<String, Value>>,
}

impl CachedObject for StoredPart {
    fn namespace(&self) -> &'static str {
        ""
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
        let Raw {
            metadata,
            spec,
            status,
        } = serde_json::from_str(json)?;
        let status = status.unwrap_or_default();
        let warnings = status.type_checking.as_ref();
        let warnings = warnings.and_then(|checks| checks.get("expressionWarnings"));
        Ok(Self {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            is_deleting: metadata.deletion_timestamp.is_some_and(|at| !at.is_null()),
            spec,
            observed_generation: status.observed_generation.filter(|it| *it != 0),
            has_warnings: warnings
                .and_then(Value::as_array)
                .is_some_and(|warnings| !warnings.is_empty()),
        })
    }

    fn index_values(&self, _out: &mut Vec<IndexKey>) {}
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(object: &Value) -> StoredPart {
        StoredPart::decode(&object.to_string()).unwrap()
    }

    #[test]
    fn policy_without_a_status_is_decoded() {
        let metadata = json!({
            "name": "p", "uid": "u", "resourceVersion": "7", "generation": 2,
        });
        let part = decode(&json!({"metadata": metadata, "spec": {"a": 1}, "status": {}}));
        let expected = StoredPart {
            name: "p".into(),
            uid: "u".into(),
            resource_version: "7".into(),
            generation: 2,
            is_deleting: false,
            spec: json!({"a": 1}),
            observed_generation: None,
            has_warnings: false,
        };
        assert_eq!(part, expected);
    }

    #[test]
    fn type_checks_and_deletion_are_decoded() {
        let warning = json!({"fieldRef": "spec.validations[0]", "warning": "no such field"});
        let part = decode(&json!({
            "metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {},
            "status": {
                "observedGeneration": 3, "typeChecking": {"expressionWarnings": [warning]},
            },
        }));
        assert_eq!(part.observed_generation, Some(3));
        assert!(part.has_warnings && part.is_deleting);
        let part = decode(&json!({
            "metadata": {"name": "p"}, "spec": {},
            "status": {"observedGeneration": 3, "typeChecking": {}},
        }));
        assert!(!part.has_warnings && !part.is_deleting);
    }
}
