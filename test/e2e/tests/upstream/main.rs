//! Upstream's e2e tests, under upstream's names, with a simulated kubelet: the controller in a
//! whole cluster, in process and in paused time. Actions that upstream performs inside a container
//! are settings of the simulated kubelet.
//!
//! Upstream: `test/e2e/apps/statefulset.go`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod api;
mod availability;
mod claim_retention;
mod identity;
mod ordinals;
mod scaling;
mod updates;

#[test]
fn every_row_has_a_test() {
    tidy::upstream::parity::assert_rows("E2E");
}
