//! Says once that events get lost, and once that they don't any more.

use super::event::Event;
use crate::error::Error;

/// What was said about the delivery of events.
#[derive(Debug, Default)]
pub(super) struct DeliveryLog {
    /// How many were dropped before the present burst, if there is one, and how many before now.
    burst_from: Option<u64>,
    dropped: u64,
    /// Why the last event was refused.
    refusal: Option<(u16, String)>,
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
        if self.refusal.take().is_some() || self.given_up > 0 {
            let lost = std::mem::take(&mut self.given_up);
            tracing::info!(lost, "events can be sent again");
        }
    }

    /// The server answered that it doesn't want an event.
    pub(super) fn refused(&mut self, event: &Event, err: &Error) {
        let status = err.status();
        let expected = err.is_already_exists()
            || status.is_some_and(|status| status.has_cause("NamespaceTerminating"))
            || err.is_told_by_server_state();
        let refusal = status.map(|status| (status.code, status.reason.clone()));
        if expected || (refusal.is_some() && self.refusal == refusal) {
            tracing::debug!(event = %event.name, error = %err, "the server refused an event");
            return;
        }
        self.refusal = refusal;
        tracing::warn!(event = %event.name, error = %err, "the server refused an event");
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
