//! Upstream's e2e tests and the shipped binaries.
//!
//! `tests/binaries` builds the programs as `make run` does and looks at them from outside: their
//! exit codes, what they print, and what they leave in the API.
//!
//! `tests/kubectl` runs sessions of kubectl against them, with the feature `kubectl`.
