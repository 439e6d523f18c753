//! Debugging flags.

use clap::ArgAction;

use super::values;

/// Upstream: `DebuggingOptions`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Debugging flags")]
pub(crate) struct DebuggingFlags {
    /// Serve `/debug/flags/v`, which changes the log verbosity at run time. The other pages of Go's
    /// profiler, under `/debug/pprof/`, don't exist here
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "true", value_parser = values::boolean)]
    pub(crate) profiling: bool,

    /// Accepted for compatibility; this program has no lock profiler
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(crate) contention_profiling: bool,
}
