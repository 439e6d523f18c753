//! A recorder that keeps its events for a test to look at.

use std::sync::{Mutex, PoisonError};

use super::{EventRecorder, EventType, ObjectReference};

/// Keeps events as lines such as `Normal SuccessfulCreate Create Pod web-0 …`.
///
/// Upstream: `record.FakeRecorder`.
#[derive(Debug, Default)]
pub struct FakeRecorder {
    events: Mutex<Vec<(ObjectReference, String)>>,
}

impl FakeRecorder {
    /// A recorder without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes all events recorded so far, in order. Upstream: `collectEvents`.
    pub fn drain(&self) -> Vec<String> {
        self.drain_with_references()
            .into_iter()
            .map(|(_, line)| line)
            .collect()
    }

    /// Takes all events recorded so far with the objects that they are about, in order.
    pub fn drain_with_references(&self) -> Vec<(ObjectReference, String)> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many events wait to be drained.
    pub fn len(&self) -> usize {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// True if no event waits to be drained.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl EventRecorder for FakeRecorder {
    fn event(
        &self,
        regarding: &ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
    ) {
        let line = format!("{event_type} {reason} {message}");
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push((regarding.clone(), line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_kept_as_lines_until_drained() {
        let recorder = FakeRecorder::new();
        let set = ObjectReference {
            name: "web".to_owned(),
            ..ObjectReference::default()
        };
        recorder.event(&set, EventType::Normal, "SuccessfulCreate", "one");
        recorder.event(&set, EventType::Warning, "FailedCreate", "two");
        assert_eq!(recorder.len(), 2);
        assert_eq!(
            recorder.drain(),
            ["Normal SuccessfulCreate one", "Warning FailedCreate two"]
        );
        assert!(recorder.is_empty());
    }
}
