//! Rules for watches.

use std::time::Duration;

use kube_test_control_plane_api::setters;
use serde::{Deserialize, Serialize};

use super::count::Count;
use super::delay::Delay;
use super::duration;
use super::error::FaultError;
use super::matcher::{RequestMatcher, is_wanted};
use super::rule::rule_setters;
use super::schedule::Schedule;

/// Selects watches, the time of effect, and an action on their events. A rule applies to open and
/// future watches. Only JSON watches are affected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct WatchRule {
    /// The rule's name in errors; the action's name if empty. It also seeds the rule's random
    /// draws.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Selects watches by their initial request.
    #[serde(rename = "match", default)]
    pub matcher: RequestMatcher,
    /// Limits the number of affected watches.
    #[serde(default)]
    pub when: Schedule,
    /// The moment at which the rule takes effect.
    #[serde(default)]
    pub moment: WatchMoment,
    /// Duration of the effect; unlimited if missing. Ignored for one-time actions.
    #[serde(
        default,
        with = "duration::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasting: Option<Duration>,
    /// The action.
    pub action: WatchAction,
}

/// A moment of a watch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum WatchMoment {
    /// Immediately: at the start of the watch, or when the rule is added to an open watch.
    #[default]
    AtOnce,
    /// After this number of further events, except bookmarks.
    AfterEvents(Count),
    /// Before the first event that matches.
    BeforeEvent(EventMatcher),
}

/// Selects events. An unset field matches every event except bookmarks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct EventMatcher {
    /// Of this type, such as `DELETED`; bookmarks match only with `BOOKMARK`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Of an object in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Of the object with this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Action on the events of a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
pub enum WatchAction {
    /// Delays each event, in order.
    Delay(Delay),
    /// Holds an event back until this number of later events have happened, including bookmarks.
    /// The initial events of a watch that requested them are not held back.
    HoldBack {
        /// The number of later events.
        events: u32,
    },
    /// Holds all events until the rule is removed or expires; then sends them.
    Freeze,
    /// Drops bookmarks, except the one that ends the initial events.
    DropBookmarks,
    /// Breaks the connection.
    Cut,
    /// Ends the stream, as at its timeout.
    Close,
    /// Sends an `ERROR` event and ends the stream: 410 makes clients list again.
    Error(FaultError),
    /// Sends only the first half of the next event and ends the stream.
    Truncate,
    /// Violates the watch contract: only for testing how clients resynchronize.
    Unsound(UnsoundAction),
}

/// A violation of the watch contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum UnsoundAction {
    /// Drops the next event.
    DropEvent,
    /// Sends the next event twice.
    DuplicateEvent,
}

impl WatchRule {
    /// Creates a rule for every matching watch, with immediate effect.
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

    /// Takes effect after this number of further events, except bookmarks.
    #[must_use]
    pub fn after_events(mut self, count: impl Into<Count>) -> Self {
        self.moment = WatchMoment::AfterEvents(count.into());
        self
    }

    /// Takes effect before the first matching event.
    #[must_use]
    pub fn before_event(mut self, event: EventMatcher) -> Self {
        self.moment = WatchMoment::BeforeEvent(event);
        self
    }

    /// Limits the duration of the effect.
    #[must_use]
    pub fn lasting(mut self, time: Duration) -> Self {
        self.lasting = Some(time);
        self
    }
}

impl EventMatcher {
    /// Matches every event except bookmarks.
    pub fn any() -> Self {
        Self::default()
    }

    setters! {
        /// Matches only this type, such as `DELETED`.
        event_type: into String,
        /// Matches only objects in this namespace.
        namespace: into String,
        /// Matches only the object with this name.
        name: into String,
    }

    /// Reports whether an event matches.
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
