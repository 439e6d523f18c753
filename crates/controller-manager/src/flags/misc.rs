//! Flags that say where the API server is.

use super::values::{self, OptionalPath};

/// Upstream: `KubeControllerManagerOptions.Flags`, its last part.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Misc flags")]
pub(crate) struct MiscFlags {
    /// File with the address of the API server and the credentials. Without it and without --master
    /// the pod's service account is used
    #[arg(long, value_name = "string", default_value = "", value_parser = values::path)]
    pub(crate) kubeconfig: OptionalPath,

    /// Address of the API server; wins over the one in the kubeconfig
    #[arg(long, value_name = "string", default_value = "")]
    pub(crate) master: String,
}
