//! The error of a request without credentials.

use crate::fence::NotLeading;

/// Why there are no credentials to send with a request.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoToken {
    /// Asking for one is a write, which this process must not make now.
    #[error("{0}")]
    NotLeading(#[source] NotLeading),
    /// The server gave none.
    #[error("cannot get a token of the service account {account}: {reason}")]
    Failed {
        /// The account, as `namespace/name`.
        account: String,
        /// What the last try ended with.
        reason: String,
    },
    /// The credential plugin gave none.
    #[error("{0}")]
    Plugin(String),
}
