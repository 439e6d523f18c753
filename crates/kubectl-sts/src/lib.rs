//! Answers to questions about StatefulSets, for the kubectl plugin `kubectl-sts`.
//!
//! A question reads objects from the API server ([`server`]), decodes the few fields that it needs
//! ([`model`]) and renders an answer ([`output`]). Only `fence`, `opt_ins` and
//! `recreate` write.

// No server or user input may cause a panic here.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable
    )
)]

mod answer;
pub mod cli;
mod cluster;
pub mod connect;
mod decide;
mod diff;
mod fence;
mod history;
pub mod model;
mod objects;
mod opt_ins;
pub mod output;
mod plan;
mod preflight;
mod recreate;
pub mod release;
mod report;
mod revisions;
pub mod server;
mod session;
mod shadow_report;
mod timeline;
mod wait;
mod watch;
mod why;

pub use answer::{follow, run};
pub use session::{Reply, Session, Verdict};
