//! Flags that select the API server.

use super::values::{self, OptionalPath};

/// Upstream: `KubeControllerManagerOptions.Flags`, its last part.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Misc flags")]
pub(crate) struct MiscFlags {
    /// Kubeconfig file with the address and credentials of the API server. Without it and without
    /// --master the pod's service account is used
    #[arg(long, value_name = "string", default_value = "", value_parser = values::path)]
    pub(crate) kubeconfig: OptionalPath,

    /// Address of the API server; overrides the one in the kubeconfig
    #[arg(long, value_name = "string", default_value = "")]
    pub(crate) master: String,
}
