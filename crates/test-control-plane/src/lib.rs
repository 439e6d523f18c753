//! An embedded Kubernetes control plane for tests.
#![doc = include_str!("../README.md")]

#[cfg(doctest)]
#[doc = include_str!("../GUIDE.md")]
mod guide {}

#[cfg(doctest)]
#[doc = include_str!("../REFERENCE.md")]
mod reference {}

pub use kube_test_control_plane_actors as actors;
pub use kube_test_control_plane_api::{kinds, object, status};
#[cfg(feature = "client")]
pub use kube_test_control_plane_cluster::cluster;
pub use kube_test_control_plane_cluster::control_plane::{
    ManifestError, StartError, TestControlPlane, TestControlPlaneBuilder,
};
pub use kube_test_control_plane_cluster::{control_plane, kubeconfig};
pub use kube_test_control_plane_server::config::{
    EmulatedVersion, EmulatedVersionError, FeatureGateError, ServerConfig, ServerGates,
    ServiceRange, ServiceRangeError, UnknownFields, UnknownFieldsError,
};
pub use kube_test_control_plane_server::server::{ApiServer, ConnectionDropped, restart};
pub use kube_test_control_plane_server::{admission, audit, certificates, config, faults};
pub use kube_test_control_plane_store::{clock, store};

/// Responses of the API server.
pub mod reply {
    pub use kube_test_control_plane_server::reply::{BoxError, Reply, ResponseBody};
}

/// The verbs of requests, as audit log and fault rules name them.
pub mod route {
    pub use kube_test_control_plane_api::kinds::Verb;
}

/// Users, their credentials and their permissions.
pub mod auth {
    pub use kube_test_control_plane_server::auth::*;
    pub use kube_test_control_plane_server::in_process::ServiceAs;
}
