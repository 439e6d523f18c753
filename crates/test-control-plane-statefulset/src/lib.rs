//! The StatefulSet controller as an actor of the test control plane.
#![doc = include_str!("../README.md")]

mod actor;
mod lease;

use kube_test_control_plane_cluster::control_plane::ForeignActor;

/// The name of the actor, in user agents and in the program's flag `--actors`.
pub const NAME: &str = "statefulset-controller";

/// Returns the actor.
pub fn controller() -> ForeignActor {
    ForeignActor::new(NAME, actor::run)
}
