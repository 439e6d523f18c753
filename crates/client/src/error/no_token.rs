//! The error of a request without credentials.

use crate::fence::NotLeading;

/// The reason that a request has no credentials.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NoToken {
    /// A token request is a write, which this process must not make now.
    #[error("{0}")]
    NotLeading(#[source] NotLeading),
    /// The server issued no token.
    #[error("cannot get a token of the service account {account}: {reason}")]
    Failed {
        /// The account, as `namespace/name`.
        account: String,
        /// The last attempt's error.
        reason: String,
    },
    /// The credential plugin returned no credentials.
    #[error("{0}")]
    Plugin(String),
}
