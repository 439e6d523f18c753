//! Upstream's integration tests, under upstream's names: the whole controller against an API
//! server, without nodes.
//!
//! Upstream: `test/integration/statefulset/statefulset_test.go`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod claims;
mod ordinals;
mod pods;
mod replicas;
mod updates;

#[test]
fn every_row_has_a_test() {
    tidy::upstream::parity::assert_rows("INT");
}
