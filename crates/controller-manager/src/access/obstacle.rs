//! The obstacles to the program's work.

use statefulset_client::error::Error;

/// Reason why the program can't start its work yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// An outage or rejected credentials, which other code has logged.
    AlreadyLogged,
    /// Rights are missing.
    Rights {
        /// List of the missing permissions.
        missing: String,
        /// First refusal; empty if an access review reported it.
        error: String,
        /// Advice for the user.
        advice: String,
    },
    /// Log line for a request that failed for another reason, or takes long.
    Request(String),
}

impl Obstacle {
    pub(super) fn of(error: &Error, action: &str) -> Self {
        if error.is_server_wide() {
            Self::AlreadyLogged
        } else {
            Self::Request(format!("cannot {action}: {error}, trying again"))
        }
    }

    pub(super) fn log(&self) {
        match self {
            Self::AlreadyLogged => {}
            Self::Rights {
                missing,
                error,
                advice,
            } => {
                let error = Some(error).filter(|error| !error.is_empty());
                tracing::warn!(%missing, error, "permissions are missing, trying again; {advice}");
            }
            Self::Request(text) => tracing::warn!("{text}"),
        }
    }
}
