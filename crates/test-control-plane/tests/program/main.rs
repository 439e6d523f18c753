//! The program: readiness line, shutdown, flags, and errors of a failed start.

#![cfg(feature = "cli")]
#![expect(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, in helpers too"
)]

mod flags;
mod refusals;
mod running;
mod stateful_sets;
