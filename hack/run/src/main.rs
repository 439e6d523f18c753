//! The program behind make run.
fn main() {}
