//! A recorder that keeps its events for tests.

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
    /// Creates a recorder without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes and returns all events so far, in order. Upstream: `collectEvents`.
    pub fn drain(&self) -> Vec<String> {
        self.drain_with_references()
            .into_iter()
            .map(|(_, line)| line)
            .collect()
    }

    /// Removes and returns all events so far with their objects, in order.
    pub fn drain_with_references(&self) -> Vec<(ObjectReference, String)> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the number of undrained events.
    pub fn len(&self) -> usize {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Returns true if there are no undrained events.
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
    fn events_are_recorded_as_lines_until_drained() {
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
