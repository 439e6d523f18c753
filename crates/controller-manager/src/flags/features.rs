//! Flags that turn behaviour on and off.

use super::values::{self, Strings};

/// Upstream: `ComponentGlobalsRegistry`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Generic flags")]
pub(crate) struct FeatureFlags {
    /// Optional behaviour to turn on or off, as Name=bool or kube:Name=bool, separated by commas
    #[arg(long, value_name = "mapStringBool", default_value = "")]
    pub(crate) feature_gates: String,

    /// The Kubernetes version to behave like, from 1.33 to 1.36: the messages of events, the form of
    /// new revisions, and the gates that there were. Nothing that runs is restarted by it
    #[arg(long, value_name = "strings", default_value = "", value_parser = values::strings)]
    pub(crate) emulated_version: Strings,

    /// The oldest Kubernetes version that other components may have, from 1.32 to the emulated one;
    /// the one before the emulated one if it is not given. Checked, but nothing depends on it
    #[arg(long, value_name = "strings", default_value = "", value_parser = values::strings)]
    pub(crate) min_compatibility_version: Strings,
}
