//! Events as log lines: what the controller does, as it does it.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use super::{EventType, ObjectReference};
use crate::lru::LruCache;

/// Of so many objects the last warning is remembered.
const OBJECTS_MAX: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// The log of what happens to objects. A warning that an object repeats is told once, until
/// something else happens to the object.
///
/// Upstream: `EventBroadcaster.StartStructuredLogging`.
#[derive(Debug)]
pub(super) struct Story {
    /// By uid.
    last_warnings: Mutex<LruCache<String, String>>,
}

impl Default for Story {
    fn default() -> Self {
        Self {
            last_warnings: Mutex::new(LruCache::new(OBJECTS_MAX)),
        }
    }
}

impl Story {
    pub(super) fn tell(
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
        let mut last = self
            .last_warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let text = match event_type {
            EventType::Normal => String::new(),
            EventType::Warning => format!("{reason}: {note}"),
        };
        let is_new = text.is_empty() || last.get(uid).is_none_or(|before| *before != text);
        last.insert(uid.clone(), text);
        drop(last);
        // Who failed returns the error as well, which is logged then.
        if is_new && !reason.starts_with("Failed") {
            tracing::info!(object = %format_args!("{namespace}/{name}"), kind, r#type = %event_type, reason, note, "Event occurred");
        } else {
            tracing::debug!(object = %format_args!("{namespace}/{name}"), kind, r#type = %event_type, reason, note, "Event occurred");
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;
    use crate::fake::CapturedLog;

    #[test]
    fn what_happens_is_told_and_what_goes_on_failing_is_not() {
        let log = CapturedLog::at(Level::INFO);
        let story = Story::default();
        let web = ObjectReference {
            kind: "StatefulSet".to_owned(),
            namespace: "ns".to_owned(),
            name: "web".to_owned(),
            uid: "u".to_owned(),
            ..ObjectReference::default()
        };
        for _ in 0..2 {
            story.tell(
                &web,
                EventType::Normal,
                "SuccessfulCreate",
                "Create Pod web-0",
            );
            for _ in 0..3 {
                story.tell(
                    &web,
                    EventType::Warning,
                    "FailedCreate",
                    "Create Pod web-1 failed",
                );
            }
            for _ in 0..3 {
                story.tell(
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
