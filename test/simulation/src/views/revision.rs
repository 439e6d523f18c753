//! ControllerRevisions.

use serde_json::Value;

use super::Owner;

/// A ControllerRevision.
#[derive(Clone, Debug)]
pub struct Revision {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// The controlling owner.
    pub controller: Option<Owner>,
    /// Number.
    pub number: i64,
    /// The recorded template.
    pub data: Value,
}

impl Revision {
    /// Reads a revision.
    pub fn read(value: &Value) -> Self {
        Self {
            name: super::text(value, "/metadata/name"),
            uid: super::text(value, "/metadata/uid"),
            controller: super::controller(value),
            number: super::number(value, "/revision"),
            data: value.get("data").cloned().unwrap_or_default(),
        }
    }
}
