//! Tests of the controller with a failing API server: log lines, requests, and no lost work.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod backoff;
mod credentials;
mod faults;
mod harness;
mod rights;
