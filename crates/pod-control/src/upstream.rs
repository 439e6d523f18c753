//! Upstream's tests of this layer, under upstream's names: a module per test that has sub-cases,
//! a function per sub-case; a function where there are none.
//!
//! Upstream changes the name of a pod in memory to make its identity wrong. Here a pod that exists
//! is only ever written as it was read, under its own name; what is wrong is its name label.
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
