//! One API over every backend: which one the environment chooses, and real binaries from start to
//! end, with programs in their place.

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
