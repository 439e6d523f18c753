//! Repository checks, run by the tests.
//!
//! Every check is a pure function from collected inputs ([`repository`] reads the files,
//! [`metadata`] asks Cargo) to a list of findings, one line each; an empty list is a pass.
//! `tests/repository.rs` runs all of them over this repository, and each module shows in a test
//! of its own that it notices what it is there for.

pub mod budgets;
pub mod dependencies;
pub mod docs;
pub mod doubles;
pub mod features;
pub mod layout;
pub mod left_out;
pub mod licenses;
pub mod metadata;
pub mod module_loops;
pub mod mutants;
pub mod panics;
pub mod parity;
pub mod paths;
pub mod reachable;
pub mod repository;
pub mod source;
pub mod status;
pub mod symbols;
pub mod test_functions;
pub mod upstream_map;
pub mod upstream_rows;

/// What a check found: one line each, `where: what is wrong and what to do`.
pub type Findings = Vec<String>;
