//! Flags that print something instead of running the controller.

use clap::{ArgAction, ValueEnum as _};
use clap_complete::Shell;

use super::values;

/// Kind of generated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// Shell completions.
    Completion(Shell),
    /// The man page.
    Man,
    /// The documentation page.
    Markdown,
}

/// Parses the name of a text.
fn text(name: &str) -> Result<Option<Text>, String> {
    match name {
        "" => Ok(None),
        "man" => Ok(Some(Text::Man)),
        "markdown" => Ok(Some(Text::Markdown)),
        _ => match name
            .strip_prefix("completion-")
            .map(|it| Shell::from_str(it, false))
        {
            Some(Ok(shell)) => Ok(Some(Text::Completion(shell))),
            _ => Err(
                "must be completion-bash, completion-elvish, completion-fish, \
                      completion-powershell, completion-zsh, man or markdown"
                    .to_owned(),
            ),
        },
    }
}

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
    #[arg(long, hide = true, value_name = "string", default_value = "", value_parser = text)]
    pub(super) generate: OptionalText,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_selected_by_name() {
        assert_eq!(text(""), Ok(None));
        assert_eq!(text("man"), Ok(Some(Text::Man)));
        assert_eq!(
            text("completion-zsh"),
            Ok(Some(Text::Completion(Shell::Zsh)))
        );
        for name in ["completion-", "completion-x", "bash", "Man"] {
            assert!(text(name).is_err(), "{name}");
        }
    }
}
