//! Events: the controller's actions as `kubectl describe` shows them.

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

/// The object of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectReference {
    /// For example `StatefulSet`.
    pub kind: String,
    /// The namespace; empty for an object without one.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// For example `apps/v1`.
    pub api_version: String,
    /// The version of the object at the time of the decision; may be empty.
    pub resource_version: String,
}

/// The severity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Information only.
    Normal,
    /// Something may go wrong.
    Warning,
}

impl EventType {
    /// Returns the API's value.
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

/// Records events about objects.
///
/// Never blocks and never fails: an event that can't be delivered is dropped.
/// Upstream: `record.EventRecorder`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
pub trait EventRecorder: Send + Sync {
    /// Records an event. `reason` is machine-readable, `message` is for people.
    fn event(
        &self,
        regarding: &ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
    );
}

/// Discards every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopRecorder;

impl EventRecorder for NoopRecorder {
    fn event(&self, _: &ObjectReference, _: EventType, _: &str, _: &str) {}
}
