//! A rule at work on one watch.

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

/// A rule at work on one watch.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) id: RuleId,
    rule: WatchRule,
    random: StdRng,
    /// How many events are still to pass before it takes effect.
    remaining: u32,
    began: Option<Instant>,
    done: bool,
}

/// How a watch ends.
#[derive(Debug)]
pub(super) enum Ending {
    /// The connection breaks.
    Cut,
    /// The stream ends.
    Close,
    /// This line comes, then the stream ends.
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

    /// Whether it takes effect now, before the line that is sent next, if there is one.
    pub(super) fn is_due(&self, next: Option<&Line>) -> bool {
        self.began.is_none()
            && match &self.rule.moment {
                WatchMoment::AtOnce | WatchMoment::AfterEvents(_) => self.remaining == 0,
                WatchMoment::BeforeEvent(event) => next.is_some_and(|line| event.matches(line)),
            }
    }

    /// Takes effect; how the watch ends, if it does.
    pub(super) fn begin(&mut self, facts: &RequestFacts) -> Option<Ending> {
        self.began = Some(Instant::now());
        let ending = match &self.rule.action {
            WatchAction::Cut => Ending::Cut,
            WatchAction::Close => Ending::Close,
            WatchAction::Error(error) => {
                let status = error.status(facts).unwrap_or_else(|| {
                    json!({
                        "kind": "Status",
                        "apiVersion": "v1",
                        "metadata": {},
                        "status": "Failure",
                        "reason": "TooManyRequests",
                        "code": error.code(),
                    })
                });
                let mut line = json!({"type": "ERROR", "object": status}).to_string();
                line.push('\n');
                Ending::Error(line.into())
            }
            _ => return None,
        };
        self.done = true;
        Some(ending)
    }

    /// When it goes out of effect by itself.
    pub(super) fn ends(&self) -> Option<Instant> {
        Some(later(self.began?, self.rule.lasting?))
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.done || self.ends().is_some_and(|end| end <= now)
    }

    fn in_effect(&self) -> Option<&WatchAction> {
        self.began.map(|_| &self.rule.action)
    }

    /// How much later a line comes.
    pub(super) fn delay(&mut self) -> Duration {
        match (self.began, &self.rule.action) {
            (Some(_), WatchAction::Delay(delay)) => delay.draw(&mut self.random),
            _ => Duration::ZERO,
        }
    }

    /// Whether a line with so many behind it has to wait.
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

    /// Counts an event that was sent.
    pub(super) fn count_event(&mut self) {
        self.remaining = self.remaining.saturating_sub(1);
    }

    /// Changes the next event, once; whether the stream ends after it.
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
