//! Texts for packagers: the man page, and completions.

use std::io::Write as _;

use anyhow::Context as _;
use clap::{CommandFactory as _, ValueEnum};
use clap_complete::Shell;

use crate::args::Args;

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

/// Prints a text. A reader that closes the pipe early is not an error.
///
/// # Errors
///
/// The text can't be written.
pub(crate) fn print(text: Text) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    match text.shell() {
        None => clap_mangen::Man::new(Args::command())
            .manual("Kubernetes")
            .render(&mut bytes)
            .context("write the man page")?,
        Some(shell) => {
            let (mut command, name) = (Args::command(), "kube-test-control-plane");
            clap_complete::generate(shell, &mut command, name, &mut bytes);
        }
    }
    match std::io::stdout().write_all(&bytes) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("write to stdout"),
    }
}
