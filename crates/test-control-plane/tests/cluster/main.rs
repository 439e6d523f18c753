//! One API for every backend: backend selection, and the life of real binaries, simulated by other
//! programs.

#![cfg(all(unix, feature = "client"))]
#![expect(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, in helpers too"
)]

mod actors;
mod choosing;
mod existing;
mod failing;
#[cfg(feature = "cli")]
mod running;
mod stand_ins;
