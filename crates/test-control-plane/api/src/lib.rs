//! Kubernetes objects in a test API server: decoding, defaults, validation, responses.
#![doc = include_str!("../README.md")]

pub mod admission;
#[cfg(feature = "cel")]
mod cel;
pub mod continue_token;
pub mod custom;
pub mod decode;
pub mod defaults;
mod go;
pub mod kinds;
pub mod list_options;
pub mod managed_fields;
pub mod members;
pub mod normalize;
pub mod object;
pub mod open_api;
pub mod options;
pub mod patch;
pub mod query;
pub mod response;
pub mod selectors;
pub mod settings;
pub mod status;
pub mod strict;
pub mod validation;
pub mod views;
pub mod warnings;
