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
pub mod faults;
pub mod kinds;
pub mod reply;
pub mod restart;
pub mod route;
pub mod store;

#[cfg(doctest)]
#[doc = include_str!("../GUIDE.md")]
mod guide {}

#[cfg(doctest)]
#[doc = include_str!("../REFERENCE.md")]
mod reference {}

pub use kube_test_control_plane_cluster::control_plane::{
    AccessError, DocumentError, ManifestError, StartError, TestControlPlane,
    TestControlPlaneBuilder,
};
#[cfg(feature = "client")]
pub use kube_test_control_plane_cluster::control_plane::{ActorContext, ForeignActor};
pub use kube_test_control_plane_cluster::kubeconfig::WriteKubeconfigError;
pub use kube_test_control_plane_server::config::{
    EmulatedVersion, EmulatedVersionError, FeatureGateError, ServerConfig, ServerGates,
    ServiceRange, ServiceRangeError, UnknownFields, UnknownFieldsError,
};
pub use kube_test_control_plane_server::server::ApiServer;
pub use kube_test_control_plane_server::tls::ListenError;
