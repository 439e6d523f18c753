//! Events.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::time;

/// An event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    /// Its object.
    pub involved_object: Reference,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of occurrences.
    #[serde(deserialize_with = "or_zero")]
    pub count: i64,
    #[serde(deserialize_with = "time")]
    first_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    last_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    #[serde(rename = "eventTime")]
    uncounted: Option<Timestamp>,
}

/// The object of an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

/// Reads a number that may be null.
fn or_zero<'de, D: Deserializer<'de>>(decoder: D) -> Result<i64, D::Error> {
    Ok(Option::deserialize(decoder)?.unwrap_or_default())
}

impl Event {
    /// Its last occurrence.
    pub fn last(&self) -> Option<Timestamp> {
        self.last_timestamp
            .or(self.uncounted)
            .or(self.first_timestamp)
    }

    /// Its first occurrence.
    pub fn first(&self) -> Option<Timestamp> {
        self.first_timestamp.or(self.uncounted)
    }
}
