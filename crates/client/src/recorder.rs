//! Events: what `kubectl describe` shows of the controller's doings.

use std::fmt;

pub use broadcast::{BroadcastRecorder, EVENT_QUEUE_CAPACITY, EventSink};
pub use event_log::EVENT_LOG_TARGET;
#[cfg(any(test, feature = "testing"))]
pub use fake::FakeRecorder;

mod broadcast;
mod correlator;
mod delivery_log;
mod event;
mod event_log;
#[cfg(any(test, feature = "testing"))]
mod fake;
mod spam_filter;

/// The object that an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectReference {
    /// Such as `StatefulSet`.
    pub kind: String,
    /// The namespace; empty for an object without one.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// Such as `apps/v1`.
    pub api_version: String,
    /// The version of the object that the decision was made on; may be empty.
    pub resource_version: String,
}

/// How serious an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Information only.
    Normal,
    /// Something may go wrong.
    Warning,
}

impl EventType {
    /// The word that the API uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Takes note of what happened to an object.
///
/// Never blocks and never fails: an event that cannot be delivered is dropped.
/// Upstream: `record.EventRecorder`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
pub trait EventRecorder: Send + Sync {
    /// Records an event. `reason` is a word for machines, `message` a sentence for people.
    fn event(
        &self,
        regarding: &ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
    );
}

/// Forgets every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopRecorder;

impl EventRecorder for NoopRecorder {
    fn event(&self, _: &ObjectReference, _: EventType, _: &str, _: &str) {}
}
