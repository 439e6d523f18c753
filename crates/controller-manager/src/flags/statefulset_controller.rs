//! Flags of the controller itself.

use super::values;

/// Upstream: `StatefulSetControllerOptions`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Statefulset-controller flags")]
pub(crate) struct StatefulSetControllerFlags {
    /// Number of StatefulSets to sync in parallel
    #[arg(long, value_name = "int", default_value = "5", value_parser = values::int)]
    pub(crate) concurrent_statefulset_syncs: i32,
}
