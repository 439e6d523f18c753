//! The kinds that the server stores.

pub use kube_test_control_plane_api::custom::{Column, CustomResource, Scale};
pub use kube_test_control_plane_api::kinds::{
    Field, Kind, NameRule, Subresource, Trait, by_kind, by_resource, by_storage,
};
