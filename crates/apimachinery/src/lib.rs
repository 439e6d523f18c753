//! Pure Kubernetes rules: object keys, owner references, selectors, Go-compatible JSON, API
//! defaulting.
//!
//! The crate has no async code, and reads no clock, environment or random source. It serves any
//! controller, test or tool that must match the Go implementation byte for byte.

// Server data must never cause a panic.
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

pub mod clock;
pub mod defaults;
pub mod error_line;
pub mod go_duration;
pub mod hash;
pub mod image;
pub mod int_or_string;
pub mod json;
pub mod labels;
pub mod object_key;
pub mod owner_reference;
pub mod pod;
pub mod protobuf;
pub mod quantity;
pub mod resource_version;
pub mod schema;
pub mod selector;
pub mod stateful_set;
pub mod strategic_merge;
pub mod time;
pub mod x509;
