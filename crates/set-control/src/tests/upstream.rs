//! Upstream's tests of this layer, under upstream's names: a module per test, a function per
//! subtest, which runs it under every retention policy where upstream does ([`walks`]).
//!
//! Upstream's caches return pointers, so a test that changes a set changes the stored one; here the
//! test stores the changed set. Upstream's drivers choose pods at random, here from a seed. Where
//! they spin until a pod has been ready long enough, the clock advances here.
//!
//! The tests of 1.37 call the functions as that version does.
//!
//! Upstream: `pkg/controller/statefulset/stateful_set_control_test.go`,
//! `stateful_set_compatibility_test.go`, `stateful_set_status_updater_test.go`, and the tests of
//! revisions and order in `stateful_set_utils_test.go`.

mod availability;
mod compatibility;
mod completion;
mod failures;
mod fixtures;
mod max_unavailable;
mod ordinals;
mod parallel;
mod revisions;
mod scale;
mod stale_pods;
mod status_updater;
mod update;
mod walks;

#[test]
fn every_row_has_a_test() {
    tidy::upstream::parity::assert_rows("SET");
}
