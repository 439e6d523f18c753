//! Sources of changing bearer tokens.

use http::HeaderValue;

use super::service_account_token::ServiceAccountToken;
use super::token_file::TokenFile;
use crate::error::NoToken;

/// A source of changing tokens.
pub(super) enum TokenSource {
    /// A file renewed by another program.
    File(TokenFile),
    /// Tokens requested from the server.
    ServiceAccount(Box<ServiceAccountToken>),
}

impl TokenSource {
    /// Returns the current token as a header value.
    ///
    /// # Errors
    ///
    /// Fails if there is no token.
    pub(super) async fn header(&self) -> Result<HeaderValue, NoToken> {
        match self {
            Self::File(file) => Ok(file.header()),
            Self::ServiceAccount(token) => token.header().await,
        }
    }

    /// Records that a request with this token failed to connect, or that the server rejected the
    /// token.
    pub(super) fn doubt(&self, header: &HeaderValue, is_unauthorized: bool) {
        match self {
            Self::File(file) => file.expire(header),
            Self::ServiceAccount(token) if is_unauthorized => token.drop_refused(header),
            Self::ServiceAccount(_) => {}
        }
    }
}
