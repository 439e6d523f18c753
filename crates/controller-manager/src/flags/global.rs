//! Flags that print something instead of running the controller.

use clap::ArgAction;

use super::generate::{self, Text};
use super::values;

/// Kind of text to generate. An alias, so that clap accepts an empty value as `None`.
pub(super) type OptionalText = Option<Text>;

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

    /// Print a text for packagers: completion-bash, completion-elvish, completion-fish,
    /// completion-powershell, completion-zsh, man or markdown
    #[arg(long, hide = true, value_name = "string", default_value = "", value_parser = generate::text)]
    pub(super) generate: OptionalText,
}
