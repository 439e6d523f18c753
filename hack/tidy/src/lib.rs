//! Repository checks, run by the tests.
//!
//! Every check is a pure function from collected inputs ([`repository`] reads the files,
//! [`metadata`] asks Cargo) to a list of findings, one line each; an empty list is a pass.
//! `tests/repository.rs` runs all of them over this repository; each module's unit tests prove that
//! it finds violations.

pub mod budgets;
pub mod code_lines;
pub mod commands;
pub mod dependencies;
pub mod docs;
pub mod doubles;
pub mod features;
pub mod generated;
pub mod items;
pub mod layout;
pub mod left_out;
pub mod metadata;
pub mod module_cycles;
pub mod mutants;
pub mod packaging;
pub mod panics;
pub mod paths;
pub mod published;
pub mod reachable;
pub mod repository;
pub mod snippets;
pub mod source;
pub mod symbols;
pub mod upstream;
pub mod words;

/// Violations, one line each: `place: violation and remedy`.
pub type Findings = Vec<String>;
