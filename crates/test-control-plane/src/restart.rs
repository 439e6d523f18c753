//! A restart of the server that keeps its objects.

pub use kube_test_control_plane_server::server::restart::Restart;
