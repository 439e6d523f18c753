//! The verbs of requests, as audit log and fault rules name them.

pub use kube_test_control_plane_api::kinds::Verb;
