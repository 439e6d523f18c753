//! Events about sets, their pods and their claims.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::Event;

/// Events about earlier pods of one name whose messages are kept: a loop causes thousands.
const MESSAGES_MAX: usize = 20;

/// An event, by its relation to the sets.
pub(super) enum RelatedEvent {
    /// A warning about an existing object, or a notice that explains something.
    Existing(Event),
    /// Another notice about the object with this uid.
    Noticed(String),
    /// About an earlier pod with the name of a desired one.
    Earlier(Event),
}

/// Events about sets, their pods and their claims, the latest first.
#[derive(Default)]
pub(super) struct Events {
    /// Warnings by the uid of their object.
    pub(super) warnings: BTreeMap<String, Vec<Event>>,
    /// Other events by the uid of their object.
    pub(super) notices: BTreeMap<String, Vec<Event>>,
    /// Warnings about earlier pods, by name.
    pub(super) earlier: BTreeMap<String, Vec<Event>>,
    /// Uids of the objects with events.
    pub(super) seen: BTreeSet<String>,
}

impl Events {
    /// Groups the events.
    pub(super) fn new(related: Vec<RelatedEvent>) -> Self {
        let mut events = Self::default();
        for related in related {
            let (map, key, event) = match related {
                RelatedEvent::Noticed(uid) => {
                    events.seen.insert(uid);
                    continue;
                }
                RelatedEvent::Earlier(event) => {
                    let name = event.involved_object.name.clone();
                    (&mut events.earlier, name, event)
                }
                RelatedEvent::Existing(event) => {
                    let map = if event.is_warning() {
                        &mut events.warnings
                    } else {
                        &mut events.notices
                    };
                    let uid = event.involved_object.uid.clone();
                    events.seen.insert(uid.clone());
                    (map, uid, event)
                }
            };
            map.entry(key).or_default().push(event);
        }
        let lists = events.warnings.values_mut();
        let lists = lists.chain(events.notices.values_mut());
        for list in lists.chain(events.earlier.values_mut()) {
            list.sort_by_key(|event| Reverse(event.last()));
        }
        for list in events.earlier.values_mut() {
            for event in list.iter_mut().skip(MESSAGES_MAX) {
                event.message = String::new();
            }
        }
        events
    }

    /// Names of pods whose earlier pods have warnings.
    pub(super) fn earlier_names(&self) -> BTreeSet<&str> {
        self.earlier.keys().map(String::as_str).collect()
    }
}
