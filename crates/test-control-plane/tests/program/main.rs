//! The program: its readiness line, its end, what its flags do, and what it says when it can't
//! start.

#![cfg(feature = "cli")]
#![expect(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, in helpers too"
)]

mod flags;
mod refusals;
mod running;
