//! Upstream's tests of this layer, under upstream's names: a module per test, a function per
//! sub-case.
//!
//! Upstream gives all revisions of a set the same data, and so the same name; here each number has
//! data of its own, so that what is told apart by name is told apart in truth.
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
