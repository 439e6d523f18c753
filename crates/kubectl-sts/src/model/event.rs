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
#[serde(default, rename_all = "camelCase")]
pub struct Reference {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// The part of the object, such as `spec.containers{app}`.
    pub field_path: String,
}

/// Reads a number that may be null.
fn or_zero<'de, D: Deserializer<'de>>(decoder: D) -> Result<i64, D::Error> {
    Ok(Option::deserialize(decoder)?.unwrap_or_default())
}

impl Event {
    /// True if the event is a warning.
    pub fn is_warning(&self) -> bool {
        self.kind == "Warning"
    }

    /// True if a kubelet stopped a container.
    pub fn is_killing(&self) -> bool {
        self.reason == "Killing"
    }

    /// The number of occurrences, at least 1.
    pub fn times(&self) -> i64 {
        self.count.max(1)
    }

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
