//! Events.

use jiff::Timestamp;
use serde::Deserialize;

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
    /// Uid.
    pub uid: String,
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
