//! Logs the delivery of events: one line when events are lost, and one on recovery.

use super::event::Event;
use crate::error::Error;
use crate::fault_log::FaultLog;

/// The logged state of event delivery.
#[derive(Debug, Default)]
pub(super) struct DeliveryLog {
    /// Total of dropped events before the current burst, if there is one, and the current total.
    burst_from: Option<u64>,
    dropped: u64,
    /// The code and the reason of the last rejection.
    refusal: FaultLog<(u16, String)>,
    /// Number of consecutive events given up.
    given_up: u64,
}

impl DeliveryLog {
    /// Logs that events were dropped because they came faster than they could be sent; `total`
    /// counts since the start.
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

    /// Logs the recovery after the server accepted an event.
    pub(super) fn delivered(&mut self) {
        if self.refusal.end().is_some() || self.given_up > 0 {
            let lost = std::mem::take(&mut self.given_up);
            tracing::info!(lost, "events can be sent again");
        }
    }

    /// Logs that the server rejected an event.
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
            tracing::warn!(event = %event.name, error = %err, "the server rejected an event");
        } else {
            tracing::debug!(event = %event.name, error = %err, "the server rejected an event");
        }
    }

    /// Logs that an event was dropped after the last attempt without a response.
    pub(super) fn given_up(&mut self, event: &Event, err: &Error) {
        self.given_up += 1;
        if self.given_up == 1 {
            tracing::warn!(event = %event.name, error = %err, "losing events: dropped one after the last attempt");
        } else {
            tracing::debug!(event = %event.name, error = %err, "dropped an event after the last attempt");
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
    use crate::recorder::EventType;

    fn event() -> Event {
        Event {
            name: "web.1".to_owned(),
            object: Arc::default(),
            resource_version: String::new(),
            component: "test".into(),
            severity: EventType::Normal,
            reason: "R".to_owned(),
            message: "m".into(),
            first_timestamp: Timestamp::UNIX_EPOCH,
            last_timestamp: Timestamp::UNIX_EPOCH,
            count: 1,
            reporting: true,
        }
    }

    #[test]
    fn burst_is_logged_at_start_and_end() {
        let log = CapturedLog::at(Level::INFO);
        let mut delivery = DeliveryLog::default();
        for (total, has_room) in [
            (0, true),
            (3, false),
            (3, false),
            (9, false),
            (9, true),
            (9, true),
        ] {
            delivery.dropped(total, has_room);
        }
        delivery.dropped(11, false);
        delivery.dropped(11, true);
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
    fn rejections_and_losses_are_logged_once_until_recovery() {
        let log = CapturedLog::at(Level::INFO);
        let mut delivery = DeliveryLog::default();
        let denied = Error::api(403, "Forbidden", "a policy forbids it");
        let exists = Error::api(409, "AlreadyExists", "there");
        let lost = Error::Timeout {
            action: "POST /".to_owned(),
            after: std::time::Duration::from_secs(90),
        };
        for _ in 0..3 {
            delivery.refused(&event(), &denied);
            delivery.refused(&event(), &exists);
            delivery.given_up(&event(), &lost);
        }
        delivery.delivered();
        delivery.delivered();
        assert_eq!(
            log.take(),
            [
                "WARN the server rejected an event event=web.1 error=a policy forbids it",
                "WARN losing events: dropped one after the last attempt event=web.1 \
                 error=POST /: no response from the API server within 90 s",
                "INFO events can be sent again lost=3",
            ]
        );
    }
}
