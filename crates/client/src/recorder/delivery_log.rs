//! The log of the delivery of events: one line when they get lost, and one when they don't any more.

use super::event::Event;
use crate::error::Error;
use crate::fault_log::FaultLog;

/// What was logged about the delivery of events.
#[derive(Debug, Default)]
pub(super) struct DeliveryLog {
    /// How many were dropped before the present burst, if there is one, and how many before now.
    burst_from: Option<u64>,
    dropped: u64,
    /// The code and the reason of the server's last refusal.
    refusal: FaultLog<(u16, String)>,
    /// How many events in a row were given up.
    given_up: u64,
}

impl DeliveryLog {
    /// So many events were dropped since the begin, as they came faster than they could be sent.
    pub(super) fn dropped(&mut self, total: u64, has_room: bool) {
        let before = std::mem::replace(&mut self.dropped, total);
        if total > before && self.burst_from.is_none() {
            self.burst_from = Some(before);
            tracing::warn!(
                "event queue is full, dropping events: they come faster than they can be sent"
            );
        } else if has_room && let Some(from) = self.burst_from.take() {
            tracing::info!(dropped = total - from, "event queue has room again");
        }
    }

    /// The server took an event.
    pub(super) fn delivered(&mut self) {
        if self.refusal.end().is_some() || self.given_up > 0 {
            let lost = std::mem::take(&mut self.given_up);
            tracing::info!(lost, "events can be sent again");
        }
    }

    /// The server answered that it doesn't want an event.
    pub(super) fn refused(&mut self, event: &Event, err: &Error) {
        let status = err.status();
        let expected = err.is_already_exists()
            || status.is_some_and(|status| status.has_cause("NamespaceTerminating"))
            || err.is_server_wide();
        let refusal = status.map(|status| (status.code, status.reason.clone()));
        let is_new = match refusal {
            _ if expected => false,
            Some(refusal) => self.refusal.begin(refusal),
            None => {
                self.refusal.end();
                true
            }
        };
        if is_new {
            tracing::warn!(event = %event.name, error = %err, "the server refused an event");
        } else {
            tracing::debug!(event = %event.name, error = %err, "the server refused an event");
        }
    }

    /// An event was tried as often as may be, and no answer came.
    pub(super) fn given_up(&mut self, event: &Event, err: &Error) {
        self.given_up += 1;
        if self.given_up == 1 {
            tracing::warn!(event = %event.name, error = %err, "events get lost: giving up on one");
        } else {
            tracing::debug!(event = %event.name, error = %err, "giving up on an event");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use tracing::Level;

    use super::*;
    use crate::fake::CapturedLog;
    use crate::recorder::{EventType, ObjectReference};

    fn event() -> Event {
        Event {
            name: "web.1".to_owned(),
            regarding: Arc::new(ObjectReference::default()),
            component: "test".into(),
            severity: EventType::Normal,
            reason: "R".to_owned(),
            message: "m".to_owned(),
            first_timestamp: Timestamp::UNIX_EPOCH,
            last_timestamp: Timestamp::UNIX_EPOCH,
            count: 1,
            reporting: true,
        }
    }

    #[test]
    fn a_burst_is_told_at_its_begin_and_with_its_size_at_its_end() {
        let log = CapturedLog::at(Level::INFO);
        let mut told = DeliveryLog::default();
        for (total, has_room) in [
            (0, true),
            (3, false),
            (3, false),
            (9, false),
            (9, true),
            (9, true),
        ] {
            told.dropped(total, has_room);
        }
        told.dropped(11, false);
        told.dropped(11, true);
        assert_eq!(
            log.take(),
            [
                "WARN event queue is full, dropping events: they come faster than they can be sent",
                "INFO event queue has room again dropped=9",
                "WARN event queue is full, dropping events: they come faster than they can be sent",
                "INFO event queue has room again dropped=2",
            ]
        );
    }

    #[test]
    fn refusals_and_losses_are_told_once_until_an_event_is_taken() {
        let log = CapturedLog::at(Level::INFO);
        let mut told = DeliveryLog::default();
        let denied = Error::api(403, "Forbidden", "a policy forbids it");
        let exists = Error::api(409, "AlreadyExists", "there");
        let lost = Error::Timeout {
            action: "POST /".to_owned(),
            after: std::time::Duration::from_secs(90),
        };
        for _ in 0..3 {
            told.refused(&event(), &denied);
            told.refused(&event(), &exists);
            told.given_up(&event(), &lost);
        }
        told.delivered();
        told.delivered();
        assert_eq!(
            log.take(),
            [
                "WARN the server refused an event event=web.1 error=a policy forbids it",
                "WARN events get lost: giving up on one event=web.1 \
                 error=POST /: no answer from the API server within 90 s",
                "INFO events can be sent again lost=3",
            ]
        );
    }
}
