//! Writers of an object, by its managed fields.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::time;

/// The managed fields of a set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ManagedSet {
    /// Metadata.
    pub metadata: ManagedMetadata,
}

/// Metadata with managed fields.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedMetadata {
    /// The last change of each writer.
    pub managed_fields: Vec<ManagedFields>,
}

/// The last change of a writer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedFields {
    /// The writer.
    pub manager: String,
    operation: String,
    subresource: String,
    /// Time of its last change.
    #[serde(deserialize_with = "time")]
    pub time: Option<Timestamp>,
    fields_v1: Value,
}

impl ManagedSet {
    /// Time of the last change of anything but a subresource's part.
    pub fn edited_at(&self) -> Option<Timestamp> {
        let entries = self.metadata.managed_fields.iter();
        let edits = entries.filter(|entry| entry.subresource != "status");
        edits.filter_map(|entry| entry.time).max()
    }

    /// The last writer of the status.
    pub fn status_manager(&self) -> Option<&str> {
        let entries = self.metadata.managed_fields.iter();
        let writers = entries.filter(|entry| entry.subresource == "status");
        let last = writers.max_by_key(|entry| entry.time)?;
        Some(&last.manager)
    }
}

impl ManagedFields {
    /// The change in one line, such as `kubectl-edit: Update of spec.replicas`.
    pub fn text(&self) -> String {
        let Self {
            manager,
            operation,
            subresource,
            ..
        } = self;
        if !subresource.is_empty() {
            return format!("{manager}: {operation} of {subresource}");
        }
        let spec = self.fields_v1.pointer("/f:spec").and_then(Value::as_object);
        let members = spec.into_iter().flatten();
        let members = members.filter_map(|(member, _)| member.strip_prefix("f:"));
        let members: Vec<&str> = members.collect();
        if members.is_empty() {
            return format!("{manager}: {operation}");
        }
        format!(
            "{manager}: {operation}; owns {} of the spec",
            members.join(", ")
        )
    }
}
