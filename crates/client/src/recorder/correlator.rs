//! Correlates events: sends, counts, combines or drops each one.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use lru::LruCache;

use super::{EventType, ObjectReference, event::Event, spam_filter::SpamFilter};

/// Maximum number of entries in each of the correlator's caches.
const CACHE_ENTRIES_MAX: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not 0");
/// Number of distinct messages at which a group is combined.
const MESSAGES_MAX: usize = 10;
/// Time without an event after which a group is forgotten.
const GROUP_WINDOW: SignedDuration = SignedDuration::from_secs(600);
/// Prefix of a combined event's message.
const COMBINED_PREFIX: &str = "(combined from similar events): ";

/// Events that differ only in their messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct GroupKey {
    component: Arc<str>,
    object: Arc<ObjectReference>,
    severity: EventType,
    reason: String,
}

/// Events counted as one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DedupKey {
    group: GroupKey,
    /// None for the group's combined event.
    message: Option<Arc<str>>,
}

#[derive(Debug)]
struct Group {
    messages: BTreeSet<Arc<str>>,
    last: Timestamp,
}

/// An event sent before.
#[derive(Debug, Clone)]
struct Sent {
    count: u32,
    first_timestamp: Timestamp,
    name: String,
}

/// Caches events to correlate new ones with.
///
/// Upstream: `record.EventCorrelator`.
#[derive(Debug)]
pub(super) struct Correlator {
    groups: LruCache<GroupKey, Group>,
    sent: LruCache<DedupKey, Sent>,
    spam_filter: SpamFilter,
}

impl Correlator {
    pub(super) fn new() -> Self {
        Self {
            groups: LruCache::new(CACHE_ENTRIES_MAX),
            sent: LruCache::new(CACHE_ENTRIES_MAX),
            spam_filter: SpamFilter::new(CACHE_ENTRIES_MAX),
        }
    }

    /// Decides what to send for an event. A count above 1 means a patch of the earlier event.
    /// Returns none if the event is dropped.
    pub(super) fn correlate(&mut self, event: Event, now: Timestamp) -> Option<Event> {
        let (event, key) = self.aggregate(event, now);
        let event = self.observe(event, key);
        self.spam_filter.accepts(&event, now).then_some(event)
    }

    /// Records an event's state on the server after it was sent.
    pub(super) fn update_state(&mut self, event: &Event) {
        let sent = Sent {
            count: event.count,
            first_timestamp: event.first_timestamp,
            name: event.name.clone(),
        };
        self.sent.put(same_key(event), sent);
    }

    /// Combines an event with its group if the group has too many messages.
    /// Upstream: `EventAggregate`.
    fn aggregate(&mut self, event: Event, now: Timestamp) -> (Event, DedupKey) {
        let mut key = group_key(&event);
        let known = self.groups.get_key_value_mut(&key);
        let lives = |group: &Group| now.duration_since(group.last) <= GROUP_WINDOW;
        let combine = if let Some((known, group)) = known.filter(|(_, group)| lives(group)) {
            // The caches then hold one object for the whole group.
            key = known.clone();
            group.last = now;
            group.messages.insert(Arc::clone(&event.message));
            let combine = group.messages.len() >= MESSAGES_MAX;
            if combine {
                group.messages.pop_first();
            }
            combine
        } else {
            let messages = BTreeSet::from([Arc::clone(&event.message)]);
            self.groups.put(
                key.clone(),
                Group {
                    messages,
                    last: now,
                },
            );
            false
        };
        let dedup_key = DedupKey {
            group: key,
            message: (!combine).then(|| Arc::clone(&event.message)),
        };
        if !combine {
            return (event, dedup_key);
        }
        let combined = Event {
            message: format!("{COMBINED_PREFIX}{}", event.message).into(),
            first_timestamp: now,
            last_timestamp: now,
            count: 1,
            reporting: false,
            ..event
        };
        (combined, dedup_key)
    }

    /// Counts a repeated event on the earlier one.
    /// Upstream: `eventObserve`.
    fn observe(&mut self, mut event: Event, key: DedupKey) -> Event {
        if let Some(sent) = self.sent.get(&key) {
            event.name.clone_from(&sent.name);
            event.first_timestamp = sent.first_timestamp;
            event.count = sent.count.saturating_add(1);
        }
        let sent = Sent {
            count: event.count,
            first_timestamp: event.first_timestamp,
            name: event.name.clone(),
        };
        self.sent.put(key, sent);
        event
    }
}

fn group_key(event: &Event) -> GroupKey {
    GroupKey {
        component: Arc::clone(&event.component),
        object: Arc::clone(&event.object),
        severity: event.severity,
        reason: event.reason.clone(),
    }
}

fn same_key(event: &Event) -> DedupKey {
    DedupKey {
        group: group_key(event),
        message: Some(Arc::clone(&event.message)),
    }
}

#[cfg(test)]
mod tests;
