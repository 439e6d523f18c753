//! Repository checks, run by the tests.
