//! Rules for watches.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::draw::{Count, Delay};
use super::duration;
use super::error::FaultError;
use super::matcher::{RequestMatcher, is_wanted};
use super::schedule::Schedule;
use super::setters::{rule_setters, text_setters};

/// Which watches, from when on, and what happens to their events. A rule is about watches that
/// are open when it is added and about those that begin later. Only watches in JSON are touched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchRule {
    /// What its errors are called; the action's name if it is empty. It also seeds what the rule
    /// draws by chance.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which watches; they match by the request that began them.
    #[serde(rename = "match", default)]
    pub matcher: RequestMatcher,
    /// How many of these watches.
    #[serde(default)]
    pub when: Schedule,
    /// At which moment of a watch it takes effect.
    #[serde(default)]
    pub moment: WatchMoment,
    /// How long it stays in effect; for ever if missing. Of no matter for what happens once.
    #[serde(
        default,
        with = "duration::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasting: Option<Duration>,
    /// What happens.
    pub action: WatchAction,
}

/// A moment of a watch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum WatchMoment {
    /// When the watch begins, or when the rule is added if it is open already.
    #[default]
    AtOnce,
    /// After so many more events, bookmarks aside.
    AfterEvents(Count),
    /// Before the first event that matches.
    BeforeEvent(EventMatcher),
}

/// Which events are meant; whatever isn't set matches every event, bookmarks aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct EventMatcher {
    /// This type, such as `DELETED`; bookmarks match if `BOOKMARK` is set.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Of an object in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Of the object with this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What happens to the events of a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum WatchAction {
    /// Each event comes so much later, in order.
    Delay(Delay),
    /// An event comes only once so many further ones have happened, bookmarks included. The
    /// initial events of a watch that asked for them come at once.
    HoldBack {
        /// How many.
        events: u32,
    },
    /// No event comes until the rule is removed or has lasted long enough; then all come.
    Freeze,
    /// No bookmarks come, except the one that ends the initial events.
    DropBookmarks,
    /// The connection breaks.
    Cut,
    /// The stream ends, as at its timeout.
    Close,
    /// An `ERROR` event comes, and the stream ends: 410 makes clients list again.
    Error(FaultError),
    /// Only the first half of the next event comes, and the stream ends.
    Truncate,
    /// What no correct server does: only for testing how clients resynchronize.
    Unsound(UnsoundAction),
}

/// What no correct server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnsoundAction {
    /// The next event never comes.
    DropEvent,
    /// The next event comes twice.
    DuplicateEvent,
}

impl WatchRule {
    /// A rule for every watch that matches, in effect at once.
    pub fn new(matcher: RequestMatcher, action: WatchAction) -> Self {
        Self {
            name: String::new(),
            matcher,
            when: Schedule::always(),
            moment: WatchMoment::AtOnce,
            lasting: None,
            action,
        }
    }

    rule_setters!();

    /// In effect after so many more events, bookmarks aside.
    #[must_use]
    pub fn after_events(mut self, count: impl Into<Count>) -> Self {
        self.moment = WatchMoment::AfterEvents(count.into());
        self
    }

    /// In effect before the first event that matches.
    #[must_use]
    pub fn before_event(mut self, event: EventMatcher) -> Self {
        self.moment = WatchMoment::BeforeEvent(event);
        self
    }

    /// In effect only so long.
    #[must_use]
    pub fn lasting(mut self, time: Duration) -> Self {
        self.lasting = Some(time);
        self
    }
}

impl EventMatcher {
    /// Matches every event, bookmarks aside.
    pub fn any() -> Self {
        Self::default()
    }

    text_setters! {
        /// Only this type, such as `DELETED`.
        event_type,
        /// Only of objects in this namespace.
        namespace,
        /// Only of the object with this name.
        name,
    }

    /// Whether it matches an event.
    pub(super) fn matches(&self, line: &super::lines::Line) -> bool {
        let by_type = match &self.event_type {
            None => !line.is_bookmark(),
            Some(wanted) => *wanted == line.event_type,
        };
        by_type
            && (self.name.is_none() && self.namespace.is_none() || {
                let metadata = line.metadata();
                is_wanted(self.name.as_ref(), &metadata.name)
                    && is_wanted(self.namespace.as_ref(), &metadata.namespace)
            })
    }
}
