//! Single syncs over caches that the tests fill: order of calls, ignored errors and requeue delays.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod claiming;
mod fixture;
mod metrics;
mod production;
mod requeue;
mod swallowed;
