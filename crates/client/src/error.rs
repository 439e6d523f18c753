//! Errors of requests to the API server.

use std::error::Error as StdError;
use std::time::Duration;

pub use no_token::NoToken;
pub use status::Status;

mod generic;
mod no_token;
mod status;

/// A failed API request.
///
/// `Display` of [`Error::Api`] is the server's message and nothing else: that is what goes into
/// events and into the errors of the layers above.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered with a failure.
    #[error("{}", .0.message)]
    Api(Box<Status>),
    /// No answer came: connection, TLS, or a broken body.
    #[error("{action}: {}", chain(.source.as_ref()))]
    Transport {
        /// What was asked, such as `GET /api/v1/pods`.
        action: String,
        /// What the transport said.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// No complete answer within the time allowed.
    #[error("{action}: no answer from the API server within {} s", .after.as_secs())]
    Timeout {
        /// What was asked.
        action: String,
        /// The time allowed.
        after: Duration,
    },
    /// An answer came that is not what was asked for.
    #[error("{action}: cannot read the answer of the API server: {source}")]
    Decode {
        /// What was asked.
        action: String,
        /// Where the text failed to parse.
        #[source]
        source: serde_json::Error,
    },
    /// An answer longer than the caller takes; what came of it was dropped.
    #[error("{action}: the answer is longer than {bytes_max} bytes")]
    AnswerTooLong {
        /// What was asked.
        action: String,
        /// The longest answer taken.
        bytes_max: usize,
    },
    /// A write that was not sent, for this process doesn't lead (any more).
    #[error("{action}: {}", crate::fence::NotLeading)]
    NotLeading {
        /// What was to be asked.
        action: String,
    },
    /// A request that was not sent, for there are no credentials to send with it (yet).
    #[error("{action}: {source}")]
    NoCredentials {
        /// What was to be asked.
        action: String,
        /// Why there are none.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The request cannot be made at all, so it was not sent.
    #[error("{0}")]
    InvalidRequest(String),
}

impl Error {
    /// An answer of the server, for fakes and tests.
    pub fn api(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self::Api(Box::new(Status::failure(code, reason, message)))
    }

    /// The server's answer, if there was one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(status) => Some(status),
            _ => None,
        }
    }

    /// True if the object does not exist. Upstream: `apierrors.IsNotFound`.
    pub fn is_not_found(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("NotFound", 404))
    }

    /// True if the object has another version or precondition than the request named.
    /// Upstream: `apierrors.IsConflict`.
    pub fn is_conflict(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("Conflict", 409))
    }

    /// True if an object of that name exists. The code never decides this.
    /// Upstream: `apierrors.IsAlreadyExists`.
    pub fn is_already_exists(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// True if validation rejected the object. Upstream: `apierrors.IsInvalid`.
    pub fn is_invalid(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("Invalid", 422))
    }

    /// True if the credentials were not accepted. Upstream: `apierrors.IsUnauthorized`.
    pub fn is_unauthorized(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("Unauthorized", 401))
    }

    /// True if the identity may not do this. Upstream: `apierrors.IsForbidden`.
    pub fn is_forbidden(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("Forbidden", 403))
    }

    /// True if the identity lacks a right, other than where a quota, a policy or a namespace that
    /// ends forbids what it may do in general.
    pub fn is_missing_right(&self) -> bool {
        self.is_forbidden()
            && self.status().is_some_and(|status| {
                let told = status.message.split_once(" is forbidden: User ");
                told.is_some_and(|(_, rest)| rest.contains(" cannot "))
            })
    }

    /// True if the server failed, or has too much to do. Another try may end better.
    pub fn is_server_failure(&self) -> bool {
        let is_failure = |status: &Status| status.code >= 500 || status.code == 429;
        self.is_too_many_requests() || self.status().is_some_and(is_failure)
    }

    /// True if the cause is not the one request: the server can't be reached, doesn't accept the
    /// credentials, or has not granted the right. The
    /// [`ApiHealthLog`](crate::rest::api_health::ApiHealthLog), or the source of the credentials,
    /// logs such errors; callers don't.
    pub fn is_server_wide(&self) -> bool {
        self.is_transport()
            || self.is_unauthorized()
            || self.is_missing_right()
            || matches!(self, Self::NoCredentials { .. })
    }

    /// True if the connection failed for its certificates or its encryption.
    pub fn is_tls(&self) -> bool {
        causes(self).any(<dyn StdError>::is::<rustls::Error>)
    }

    /// True if the server asks to slow down. Upstream: `apierrors.IsTooManyRequests`.
    pub fn is_too_many_requests(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "TooManyRequests" || status.code == 429)
    }

    /// True if the resource version asked for is no longer kept (HTTP 410).
    /// Upstream: `apierrors.IsResourceExpired` and `IsGone`.
    pub fn is_expired(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "Expired" || status.is("Gone", 410))
    }

    /// True if no answer of the server was received: the request may or may not have been applied.
    pub fn is_transport(&self) -> bool {
        matches!(self, Self::Transport { .. } | Self::Timeout { .. })
    }
}

/// An error and its causes, those that an I/O error wraps included.
pub(crate) fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // An I/O error names the cause of what it wraps, not that itself.
        match error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
}

/// Renders an error with its causes, leaving out a cause that its wrapper has already printed.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
