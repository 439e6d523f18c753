//! A name of the shipped manifests.

/// Name of the controller's account, role binding, lease and flow schema in the shipped manifests.
pub(super) const SHIPPED: &str = "statefulset-controller-manager";
