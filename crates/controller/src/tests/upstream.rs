//! Upstream's tests of this layer, under upstream's names: a module per test, a function per
//! subtest.
//!
//! Upstream: `pkg/controller/statefulset/stateful_set_test.go`, the part of
//! `stateful_set_utils_test.go` about sets that overlap, `pkg/controller/controller_ref_manager_test.go`.

mod claiming;
mod controller_ref_manager;
mod fixtures;
mod handlers;
mod overlapping;
mod scaling;

#[test]
fn every_row_has_a_test() {
    tidy::upstream::parity::assert_rows("CTL");
}
