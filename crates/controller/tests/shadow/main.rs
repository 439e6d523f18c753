//! A shadow alongside a leading controller, on the embedded control plane in paused time.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod equal;
mod faults;
mod mutants;
mod stage;
