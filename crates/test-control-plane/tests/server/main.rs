//! The API server and its actors, as clients see them.

#![expect(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, in helpers too"
)]

mod actors;
mod actors_garbage_collector;
mod actors_namespaces;
mod audit;
mod client;
mod deletions;
mod faults;
mod field_validation;
mod resources;
mod support;
mod tls;
mod watches;
mod writes;
