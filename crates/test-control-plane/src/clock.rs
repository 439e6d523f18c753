//! The time of the server.

pub use kube_test_control_plane_store::clock::{Clock, TokioClock};
