//! Flags of the controller itself.

use clap::ArgAction;

use super::values;

/// Upstream: `StatefulSetControllerOptions`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Statefulset-controller flags")]
pub(crate) struct StatefulSetControllerFlags {
    /// Number of StatefulSets to sync in parallel
    #[arg(long, value_name = "int", default_value = "5", value_parser = values::int)]
    pub(crate) concurrent_statefulset_syncs: i32,

    /// The shard of all namespaces to serve, as INDEX/COUNT: of several instances with the same
    /// count each serves a part. The lease gets the suffix -shard-INDEX-of-COUNT. Without it all
    /// namespaces are served. A flag of this program alone
    #[arg(long, value_name = "string", default_value = "")]
    pub(crate) shard: String,

    /// The label of the namespaces to serve, as KEY=VALUE, for clusters whose built-in controller
    /// can't be disabled. Nothing is written in a namespace before the admission policies of the
    /// fence are seen to be in force there. Without it all namespaces are served. A flag of this
    /// program alone
    #[arg(long, value_name = "string", default_value = "")]
    pub(crate) namespace_selector: String,

    /// Choices of StatefulSets that make none, as NAME=VALUE separated by commas: what they opt in
    /// to beyond upstream's controller. Each needs its feature gate. A flag of this program alone
    #[arg(long, value_name = "string", default_value = "")]
    pub(crate) opt_in_defaults: String,

    /// Run alongside another StatefulSet controller: take no lease, write nothing, compare every
    /// decision with the other controller's writes, and serve the result under /shadow
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(crate) shadow: bool,
}
