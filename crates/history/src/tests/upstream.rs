//! Upstream's tests of this layer, under upstream's names: a module per test, a function per
//! subtest.
//!
//! Upstream gives all revisions of a set the same data, and so the same name. Here each number has
//! different data, so revisions with different names differ in content too.
//!
//! Upstream: `pkg/controller/history/controller_history_test.go`, `benchmark_test.go`.

mod adopt;
mod benchmark;
mod create;
mod delete;
mod find_equal;
mod fixtures;
mod list;
mod release;
mod sort;
mod update;

#[test]
fn every_row_has_a_test() {
    tidy::upstream::parity::assert_rows("HIS");
}
