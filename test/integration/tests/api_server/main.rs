//! The controller before an API server that fails: what it says, what it asks, and that nothing
//! is lost.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod backoff;
mod credentials;
mod faults;
mod harness;
mod rights;
