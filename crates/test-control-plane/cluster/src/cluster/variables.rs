//! Environment variables that select the backend.

pub(super) const ASSETS: &str = "KUBEBUILDER_ASSETS";
pub(super) const EXISTING: &str = "USE_EXISTING_CLUSTER";
