//! Upstream's tests of this layer, under upstream's names: a module per test, a function per
//! sub-case, which runs it under every retention policy where upstream does.
//!
//! Upstream's caches hand out pointers, so that a test which changes a set changes the stored one;
//! here it stores the set that it has changed. Its drivers choose pods at random, from a seed here,
//! and where they spin until a pod has been ready long enough, here the clock moves on.
//!
//! Upstream: `pkg/controller/statefulset/stateful_set_control_test.go`,
//! `stateful_set_compatibility_test.go`, `stateful_set_status_updater_test.go`, and the tests of
//! revisions and order in `stateful_set_utils_test.go`.

mod availability;
mod compatibility;
mod drivers;
mod failures;
mod fixtures;
mod max_unavailable;
mod ordinals;
mod parallel;
mod revisions;
mod runs;
mod scale;
mod status_updater;
mod update;
