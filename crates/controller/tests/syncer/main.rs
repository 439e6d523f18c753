//! One sync at a time, over caches that the tests fill: what is done in which order, what is
//! swallowed, and when the set is to be looked at again.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod claiming;
mod fixture;
mod metrics;
mod production;
mod requeue;
mod swallowed;
