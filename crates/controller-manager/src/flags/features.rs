//! Flags that turn behaviour on and off.

use super::values::{self, Strings};

/// Upstream: `ComponentGlobalsRegistry`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Generic flags")]
pub(crate) struct FeatureFlags {
    /// Optional behaviour, as Name=true or Name=false, separated by commas:
    /// MaxUnavailableStatefulSet, StatefulSetSemanticRevisionComparison,
    /// StaleControllerConsistencyStatefulSet, AllAlpha, AllBeta
    #[arg(long, value_name = "mapStringBool", default_value = "")]
    pub(crate) feature_gates: String,

    /// The Kubernetes version to behave like, such as 1.35 or kube=1.35
    #[arg(long, value_name = "strings", default_value = "", value_parser = values::strings)]
    pub(crate) emulated_version: Strings,

    /// The oldest Kubernetes version to get along with, such as 1.35 or kube=1.35
    #[arg(long, value_name = "strings", default_value = "", value_parser = values::strings)]
    pub(crate) min_compatibility_version: Strings,
}
