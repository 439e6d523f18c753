//! An embedded Kubernetes API server for tests: requests, watches, users, audit log, faults.
#![doc = include_str!("../README.md")]

mod access;
pub mod admission;
pub mod audit;
pub mod auth;
pub mod certificates;
pub mod config;
pub mod containers;
mod definitions;
pub mod faults;
mod handlers;
pub mod in_process;
mod incoming;
mod pipeline;
pub mod reply;
pub mod resource_path;
mod review;
mod route;
pub mod server;
mod state;
mod streams;
pub mod tls;
mod transport;
mod tunnel;
mod watch;
mod write;
