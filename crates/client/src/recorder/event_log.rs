//! Logs recorded events.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use super::{EventType, ObjectReference};
use crate::fault_log::FaultLog;

/// The `tracing` target of logged events, for filters.
pub const EVENT_LOG_TARGET: &str = module_path!();

/// Maximum number of objects whose last warning is kept.
const OBJECTS_MAX: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// Logs every event. A repeated warning is logged once until the object has another event.
///
/// Upstream: `EventBroadcaster.StartStructuredLogging`.
#[derive(Debug)]
pub(super) struct EventLog {
    /// By uid.
    warnings: Mutex<LruCache<String, FaultLog<String>>>,
}

impl Default for EventLog {
    fn default() -> Self {
        Self {
            warnings: Mutex::new(LruCache::new(OBJECTS_MAX)),
        }
    }
}

impl EventLog {
    pub(super) fn log(
        &self,
        regarding: &ObjectReference,
        event_type: EventType,
        reason: &str,
        note: &str,
    ) {
        let ObjectReference {
            kind,
            namespace,
            name,
            uid,
            ..
        } = regarding;
        let is_new = self.is_new(uid, event_type, reason, note);
        // The caller logs the error of a `Failed…` event.
        if is_new && !reason.starts_with("Failed") {
            tracing::info!(object = %format_args!("{namespace}/{name}"), kind, r#type = %event_type, reason, note, "Event occurred");
        } else {
            tracing::debug!(object = %format_args!("{namespace}/{name}"), kind, r#type = %event_type, reason, note, "Event occurred");
        }
    }

    fn is_new(&self, uid: &str, event_type: EventType, reason: &str, note: &str) -> bool {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        match event_type {
            EventType::Normal => {
                warnings.pop(uid);
                true
            }
            EventType::Warning => warnings
                .get_or_insert_mut(uid.to_owned(), FaultLog::default)
                .begin(format!("{reason}: {note}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;
    use crate::fake::CapturedLog;

    #[test]
    fn a_repeated_warning_is_logged_once() {
        let log = CapturedLog::at(Level::INFO);
        let events = EventLog::default();
        let web = ObjectReference {
            kind: "StatefulSet".to_owned(),
            namespace: "ns".to_owned(),
            name: "web".to_owned(),
            uid: "u".to_owned(),
            ..ObjectReference::default()
        };
        for _ in 0..2 {
            events.log(
                &web,
                EventType::Normal,
                "SuccessfulCreate",
                "Create Pod web-0",
            );
            for _ in 0..3 {
                events.log(
                    &web,
                    EventType::Warning,
                    "FailedCreate",
                    "Create Pod web-1 failed",
                );
            }
            for _ in 0..3 {
                events.log(
                    &web,
                    EventType::Warning,
                    "RecreatingFailedPod",
                    "web-2 failed",
                );
            }
        }
        let created = "INFO Event occurred object=ns/web kind=StatefulSet type=Normal \
                       reason=SuccessfulCreate note=Create Pod web-0";
        let replaced = "INFO Event occurred object=ns/web kind=StatefulSet type=Warning \
                        reason=RecreatingFailedPod note=web-2 failed";
        assert_eq!(log.take(), [created, replaced, created, replaced]);
    }
}
