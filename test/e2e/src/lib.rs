//! Upstream's e2e tests and the shipped binaries.
