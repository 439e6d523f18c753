//! Objects that an older server has left in a store.

use serde_json::json;

use crate::defaults;
use crate::kinds::{Kind, Trait};
use crate::object::{AsIs, Draft, Key, StoreAsIsError};
use crate::settings::{EmulatedVersion, ServerGates, UnknownFields};

/// An object as a server reads it from its store: with today's defaults, but not validated.
#[derive(Debug)]
pub struct OlderObject {
    /// The kind of the object.
    pub kind: &'static Kind,
    /// The storage key of the object.
    pub key: Key,
    /// The object.
    pub draft: Draft,
}

impl OlderObject {
    /// Reads an object.
    ///
    /// # Errors
    ///
    /// The text is no object of a known kind, the object has no name, or a field has a value that
    /// its type doesn't have.
    pub fn read(
        text: &[u8],
        version: EmulatedVersion,
        gates: ServerGates,
        unknown: UnknownFields,
    ) -> Result<Self, StoreAsIsError> {
        let object = AsIs::read(text)?;
        let (kind, key) = (object.kind, object.key.clone());
        let mut draft = object.into_draft();
        defaults::set_defaults(kind, gates, unknown, &mut draft);
        super::normalize(kind, &mut draft, version, unknown)
            .map_err(|error| StoreAsIsError::Value(error.message))?;
        super::drop_empty_lists(kind, &mut draft, version);
        Ok(Self { kind, key, draft })
    }

    /// Fills in a missing uid, creation time and generation.
    pub fn identify(&mut self, uid: &str, now: &str) {
        let has_generation = self.kind.has(Trait::Generation);
        let metadata = self.draft.metadata_mut();
        for (member, value) in [("uid", uid), ("creationTimestamp", now)] {
            let found = metadata.entry(member).or_insert(json!(""));
            if found.as_str().is_none_or(str::is_empty) {
                *found = json!(value);
            }
        }
        if has_generation {
            metadata.entry("generation").or_insert(json!(1));
        }
    }
}
