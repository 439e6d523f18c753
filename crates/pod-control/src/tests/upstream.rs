//! Upstream's tests of this layer, under upstream's names: a module per test with subtests and a
//! function per subtest; a function per test without subtests.
//!
//! Upstream changes a pod's name in memory to make its identity wrong. Here a pod is always written
//! under its own name; its name label is wrong instead.
//!
//! Upstream: `pkg/controller/statefulset/stateful_pod_control_test.go`,
//! `stateful_set_utils_test.go`.

mod claim_owners;
mod consistency;
mod controllers;
mod create;
mod delete;
mod fixtures;
mod identity;
mod owner_references;
mod retention;
mod rewrite;
mod stale_claims;
mod storage;
mod update;

#[test]
fn every_row_has_a_test() {
    tidy::upstream::parity::assert_rows("POD");
}
