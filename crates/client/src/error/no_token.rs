//! The error of a request without credentials.

use std::process::ExitStatus;
use std::time::Duration;

use crate::causes::Preparation;
use crate::fence::NotLeading;

/// The reason that a request has no credentials.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NoToken {
    /// A token request is a write, which this process must not make now. Expected on a standby
    /// instance.
    #[error("{0}")]
    NotLeading(#[source] NotLeading),
    /// Requesting a token failed. Expected while the server is unreachable, or if it denies the
    /// permission.
    #[error("cannot get a token of the service account {account}: {source}")]
    Failed {
        /// The account, as `namespace/name`.
        account: String,
        /// The last attempt's error, an [`Error`](super::Error).
        #[source]
        source: Preparation,
    },
    /// Running the credential plugin failed.
    #[error("{0}")]
    Plugin(#[from] PluginError),
}

/// The reason that a credential plugin returned no credentials. Omits its standard output, which may
/// contain tokens.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// The user's entry names no command.
    #[error("the credential plugin has no command")]
    NoCommand,
    /// The plugin needs a user at a terminal.
    #[error(
        "the credential plugin requires a terminal (interactiveMode: Always), but there is none"
    )]
    Interactive,
    /// Starting the program, or waiting for its end, failed. Expected if it isn't installed.
    #[error("cannot run the credential plugin: {0}")]
    Start(#[source] Preparation),
    /// The program did not exit.
    #[error("the credential plugin did not exit within {} s", .after.as_secs())]
    Hangs {
        /// The time limit.
        after: Duration,
    },
    /// The program reported a failure. Expected if the user isn't logged in.
    #[error("the credential plugin failed with {status}{}{said}", if .said.is_empty() { "" } else { ": " })]
    Failed {
        /// Its exit status.
        status: ExitStatus,
        /// The last line of its standard error, truncated; empty if there is none.
        said: String,
    },
    /// The output is no credential, or the connection can't use it.
    #[error("the credential plugin returned no usable credentials")]
    Unusable,
}
