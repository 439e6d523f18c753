//! Control planes for tests: the embedded one, kube-apiserver with etcd, an existing cluster.
#![doc = include_str!("../README.md")]

#[cfg(feature = "client")]
pub mod cluster;
pub mod control_plane;
pub mod kubeconfig;
mod manifests;
