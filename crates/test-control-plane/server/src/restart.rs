//! Restarts of the API server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::SignedDuration;

use crate::server::ApiServer;

/// How the API server restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restart {
    /// How long it refuses connections.
    pub down_for: Duration,
    /// Whether it still knows the events before the restart. A real server doesn't: a watch from
    /// an older revision is answered with 410, as the events are in its memory only.
    pub keep_events: bool,
}

impl ApiServer {
    /// Restarts: every connection breaks, what is on its way is lost, the objects stay.
    pub fn restart(&self, restart: Restart) {
        if !restart.keep_events {
            let floor = self.store().revision();
            self.watch_floor().store(floor, Ordering::Relaxed);
        }
        let outage = self.faults().outage();
        if restart.down_for.is_zero() {
            outage.break_connections();
        } else {
            outage.begin_for(restart.down_for);
        }
    }

    /// Sets the server's clock ahead of its original one, or behind it.
    pub fn set_clock_ahead(&self, ahead: SignedDuration) {
        self.skew().set_ahead(ahead);
    }
}
