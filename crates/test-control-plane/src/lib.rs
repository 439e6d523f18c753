//! An embedded Kubernetes control plane for tests.
#![doc = include_str!("../README.md")]

pub mod actors;
pub mod admission;
pub mod audit;
pub mod auth;
pub mod certificates;
pub mod clock;
#[cfg(feature = "client")]
pub mod cluster;
pub mod config;
pub mod control_plane;
pub mod faults;
pub mod kinds;
pub mod kubeconfig;
pub mod object;
pub mod reply;
pub mod restart;
pub mod route;
pub mod server;
pub mod status;
pub mod store;
pub mod tls;

mod allocate;
mod call;
mod continue_token;
mod decode;
mod defaults;
mod events;
mod go_format;
mod go_json;
mod handlers;
mod incoming;
mod list_options;
mod managed_fields;
mod members;
mod negotiate;
mod normalize;
mod open_api;
mod options;
mod patch;
mod pretty;
mod query;
mod represent;
mod selectors;
mod strict;
mod table;
mod tracking;
mod transport;
mod validation;
mod warnings;
mod watch;
mod write;
mod yaml;

pub use config::{FeatureGateError, FeatureGates, ServerConfig, UnknownFields, UnknownFieldsError};
pub use control_plane::{StartError, TestControlPlane, TestControlPlaneBuilder};
pub use server::ApiServer;
