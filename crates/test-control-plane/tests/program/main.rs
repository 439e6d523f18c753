//! The program: its readiness line, its exit, its flags, and its errors at start.

#![cfg(feature = "cli")]
#![expect(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, in helpers too"
)]

mod flags;
mod refusals;
mod running;
