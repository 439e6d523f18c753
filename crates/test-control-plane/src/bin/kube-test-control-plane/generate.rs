//! Texts for packagers: the man page, and completions.

use std::io::Write as _;

use anyhow::Context as _;
use clap::{Command, ValueEnum};
use clap_complete::Shell;

/// A generated text, named as in the flags of the controller manager.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub(crate) enum Text {
    Man,
    CompletionBash,
    CompletionElvish,
    CompletionFish,
    #[value(name = "completion-powershell")]
    CompletionPowerShell,
    CompletionZsh,
}

impl Text {
    /// Returns the shell of completions.
    fn shell(self) -> Option<Shell> {
        match self {
            Self::Man => None,
            Self::CompletionBash => Some(Shell::Bash),
            Self::CompletionElvish => Some(Shell::Elvish),
            Self::CompletionFish => Some(Shell::Fish),
            Self::CompletionPowerShell => Some(Shell::PowerShell),
            Self::CompletionZsh => Some(Shell::Zsh),
        }
    }
}

/// Prints a text about the command. A reader that closes the pipe early is not an error.
///
/// # Errors
///
/// The text can't be written.
pub(crate) fn print(text: Text, mut command: Command) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    match text.shell() {
        None => clap_mangen::Man::new(command)
            .manual("Kubernetes")
            .render(&mut bytes)
            .context("write the man page")?,
        Some(shell) => {
            let name = command.get_name().to_owned();
            clap_complete::generate(shell, &mut command, name, &mut bytes);
        }
    }
    match std::io::stdout().write_all(&bytes) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("write to stdout"),
    }
}
