//! Upstream's integration tests, against the test control plane.
