//! Restarts of the API server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::SignedDuration;

use crate::server::ApiServer;

/// Settings of a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restart {
    /// Time for which connections are refused.
    pub down_for: Duration,
    /// True to keep the events before the restart. A real server keeps events only in memory, so it
    /// answers a watch from an older revision with 410.
    pub keep_events: bool,
}

impl ApiServer {
    /// Restarts the server: all connections break, requests in flight are lost, objects are kept.
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

    /// Sets the offset of the server's clock from its original one; negative for a slow clock.
    pub fn set_clock_ahead(&self, ahead: SignedDuration) {
        self.skew().set_ahead(ahead);
    }
}
