//! The interface of wall clocks.

use std::fmt;

use jiff::Timestamp;

/// Returns the wall-clock time. A program passes one in, and tests replace it.
///
/// Upstream: `clock.PassiveClock`.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

impl fmt::Debug for dyn Clock {
    /// Omits the time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
