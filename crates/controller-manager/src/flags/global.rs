//! Flags that print something instead of running.

use clap::ArgAction;

use super::values;

/// Upstream: `globalflag.AddGlobalFlags`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Global flags")]
pub(super) struct GlobalFlags {
    /// Print this
    #[arg(short, long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(super) help: bool,

    /// Print the version
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(super) version: bool,
}
