//! Runners that replay recorded behaviour of upstream against the real crates and programs.
//!
//! Each runner reads files of one format (plain or gzip), runs every case, prints the differences,
//! and counts. A deliberate deviation is a pure rule from a case to an altered expectation
//! ([`deviations`]); nothing else is exempted.

pub mod apiserver;
pub mod deviations;
pub mod diff;
pub mod files;
pub mod json_patches;
pub mod kubectl;
pub mod masks;
pub mod metrics;
pub mod model;
pub mod objects;
pub mod odd;
pub mod outcome;
pub mod programs;
pub mod remote;
pub mod report;
pub mod requests;
pub mod revisions;
pub mod settled;
pub mod sync;
pub mod sync_case;

mod exchange;
