//! A rule applied to one watch.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kube_test_control_plane_store::clock::later;
use rand::rngs::StdRng;
use serde_json::json;
use tokio::time::Instant;

use super::facts::RequestFacts;
use super::lines::Line;
use super::rule::RuleId;
use super::watch_rule::{UnsoundAction, WatchAction, WatchMoment, WatchRule};

/// A rule applied to one watch.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) id: RuleId,
    rule: WatchRule,
    random: StdRng,
    /// Number of events to pass before the rule takes effect.
    remaining: u32,
    began: Option<Instant>,
    done: bool,
}

/// End of a watch.
#[derive(Debug)]
pub(super) enum Ending {
    /// The connection breaks.
    Cut,
    /// The stream ends.
    Close,
    /// The stream ends after this line.
    Error(Bytes),
}

impl Applied {
    pub(super) fn new(id: RuleId, rule: WatchRule, mut random: StdRng) -> Self {
        let remaining = match rule.moment {
            WatchMoment::AfterEvents(count) => count.draw(&mut random),
            WatchMoment::AtOnce | WatchMoment::BeforeEvent(_) => 0,
        };
        Self {
            id,
            rule,
            random,
            remaining,
            began: None,
            done: false,
        }
    }

    /// Reports whether the rule takes effect before the next line, if any.
    pub(super) fn is_due(&self, next: Option<&Line>) -> bool {
        self.began.is_none()
            && match &self.rule.moment {
                WatchMoment::AtOnce | WatchMoment::AfterEvents(_) => self.remaining == 0,
                WatchMoment::BeforeEvent(event) => next.is_some_and(|line| event.matches(line)),
            }
    }

    /// Activates the rule. Returns the watch's end, if the rule ends it.
    pub(super) fn begin(&mut self, facts: &RequestFacts) -> Option<Ending> {
        self.began = Some(Instant::now());
        let ending = match &self.rule.action {
            WatchAction::Cut => Ending::Cut,
            WatchAction::Close => Ending::Close,
            WatchAction::Error(error) => {
                let status = error.error(facts).to_value();
                let mut line = json!({"type": "ERROR", "object": status}).to_string();
                line.push('\n');
                Ending::Error(line.into())
            }
            _ => return None,
        };
        self.done = true;
        Some(ending)
    }

    /// Returns the time at which the rule expires.
    pub(super) fn ends(&self) -> Option<Instant> {
        Some(later(self.began?, self.rule.lasting?))
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.done || self.ends().is_some_and(|end| end <= now)
    }

    fn in_effect(&self) -> Option<&WatchAction> {
        self.began.map(|_| &self.rule.action)
    }

    /// Returns the delay of a line.
    pub(super) fn delay(&mut self) -> Duration {
        match (self.began, &self.rule.action) {
            (Some(_), WatchAction::Delay(delay)) => delay.draw(&mut self.random),
            _ => Duration::ZERO,
        }
    }

    /// Reports whether a line with `behind` later lines must wait.
    pub(super) fn holds(&self, behind: usize, initial: bool) -> bool {
        match self.in_effect() {
            Some(WatchAction::Freeze) => true,
            Some(WatchAction::HoldBack { events }) => {
                !initial && behind < usize::try_from(*events).unwrap_or(usize::MAX)
            }
            _ => false,
        }
    }

    pub(super) fn drops(&self, line: &Line) -> bool {
        matches!(self.in_effect(), Some(WatchAction::DropBookmarks))
            && line.is_bookmark()
            && !line.ends_initial_events()
    }

    /// Counts a sent event.
    pub(super) fn count_event(&mut self) {
        self.remaining = self.remaining.saturating_sub(1);
    }

    /// Changes the next event, once. Returns true if the stream ends after it.
    pub(super) fn change(&mut self, text: &mut Bytes) -> bool {
        let Some(action) = self.in_effect() else {
            return false;
        };
        match action {
            WatchAction::Truncate => text.truncate(text.len() / 2),
            WatchAction::Unsound(UnsoundAction::DropEvent) => text.clear(),
            WatchAction::Unsound(UnsoundAction::DuplicateEvent) => {
                let mut twice = BytesMut::from(&text[..]);
                twice.extend_from_slice(text);
                *text = twice.freeze();
            }
            _ => return false,
        }
        self.done = true;
        matches!(self.rule.action, WatchAction::Truncate)
    }
}
