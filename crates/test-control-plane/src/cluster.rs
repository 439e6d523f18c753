//! One API for the embedded control plane, real binaries and an existing cluster; see
//! [`TestCluster`].

pub use kube_test_control_plane_cluster::cluster::{
    Assets, Backend, BinaryError, ClusterError, ConnectError, NoActors, NotEmbedded,
    RealControlPlane, RequestError, TestCluster, TestClusterBuilder,
};
