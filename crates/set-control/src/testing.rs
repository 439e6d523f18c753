//! A set control with in-memory objects, and the invariants after every step.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test's cluster may panic on mistakes in the test"
)]

mod counts;
pub mod invariants;
mod world;

pub use counts::Counts;
pub use world::{INJECTED, Invariants, PodId, World, edit_template, stateful_set_pod};
