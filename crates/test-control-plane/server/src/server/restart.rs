//! Restarts of the API server.

use std::time::Duration;

use kube_test_control_plane_api::setters;

/// Settings of a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// Time for which connections are refused.
    pub down_for: Duration,
    /// True to keep the events before the restart. A real server keeps events only in memory, so it
    /// responds to a watch from an older revision with 410.
    pub keep_events: bool,
}

impl Restart {
    setters! {
        /// Sets the time for which connections are refused.
        down_for: Duration,
        /// Keeps the events before the restart.
        keep_events: bool,
    }
}
