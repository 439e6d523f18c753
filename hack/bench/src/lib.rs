//! Benchmarks that print ratios against a baseline in the same run.
