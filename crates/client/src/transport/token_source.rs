//! Sources of bearer tokens that change.

use http::HeaderValue;

use super::service_account_token::ServiceAccountToken;
use super::token_file::TokenFile;
use crate::error::NoToken;

/// A source of tokens that change.
pub(super) enum TokenSource {
    /// Somebody else keeps a file fresh.
    File(TokenFile),
    /// The server is asked for tokens.
    ServiceAccount(Box<ServiceAccountToken>),
}

impl TokenSource {
    /// The token to send, as the value of a header.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) async fn header(&self) -> Result<HeaderValue, NoToken> {
        match self {
            Self::File(file) => Ok(file.header()),
            Self::ServiceAccount(token) => token.header().await,
        }
    }

    /// Notes that a request with this token failed for want of a connection, or that the server
    /// doesn't accept the token.
    pub(super) fn doubt(&self, header: &HeaderValue, is_unauthorized: bool) {
        match self {
            Self::File(file) => file.expire(header),
            Self::ServiceAccount(token) if is_unauthorized => token.drop_refused(header),
            Self::ServiceAccount(_) => {}
        }
    }
}
