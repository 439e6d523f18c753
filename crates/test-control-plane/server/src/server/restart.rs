//! Restarts of the API server.

use std::time::Duration;

/// Settings of a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restart {
    /// Time for which connections are refused.
    pub down_for: Duration,
    /// True to keep the events before the restart. A real server keeps events only in memory, so it
    /// responds to a watch from an older revision with 410.
    pub keep_events: bool,
}
