//! Conditions of sets.

use jiff::Timestamp;
use serde_json::Value;

use super::text;

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Type.
    pub kind: String,
    /// Status.
    pub status: String,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
    /// Time of the last transition.
    pub time: Option<Timestamp>,
}

impl Condition {
    /// Reads the conditions of an object, by type.
    pub(super) fn read_all(value: &Value) -> Vec<Self> {
        let list = value
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let conditions = list.into_iter().flatten().map(|it| Self {
            kind: text(it, "/type"),
            status: text(it, "/status"),
            reason: text(it, "/reason"),
            message: text(it, "/message"),
            time: text(it, "/lastTransitionTime").parse().ok(),
        });
        let mut conditions: Vec<Self> = conditions.collect();
        conditions.sort_by(|left, right| left.kind.cmp(&right.kind));
        conditions
    }

    /// Reports whether another one differs in its time alone, or not at all.
    pub fn is_same(&self, other: &Self) -> bool {
        let fields = |it: &Self| {
            let Self {
                kind,
                status,
                reason,
                message,
                ..
            } = it.clone();
            [kind, status, reason, message]
        };
        fields(self) == fields(other)
    }
}
