//! An embedded Kubernetes API server for tests: requests, watches, users, audit log, faults.

mod access;
pub mod admission;
mod allocations;
pub mod audit;
pub mod auth;
mod call;
pub mod certificates;
pub mod config;
mod custom;
mod decoding;
mod definitions;
pub mod faults;
mod handlers;
mod incoming;
mod pipeline;
pub mod reply;
mod resource_path;
pub mod restart;
pub mod route;
pub mod server;
pub mod service_as;
pub mod tls;
mod tracking;
mod transport;
mod watch;
mod write;
