//! Errors of requests to the API server.

use std::error::Error as StdError;
use std::time::Duration;

use generic::status_of_response;
use kube_apimachinery::error_line::error_line;
pub use no_token::{NoToken, PluginError};
pub use status::Status;

pub use crate::causes::Preparation;
pub use crate::not_processed::NotProcessed;

use crate::causes::causes;
use crate::not_processed::is_not_processed;
use crate::resource::GroupResource;

mod generic;
mod no_token;
mod status;

/// A failed API request.
///
/// `Display` of [`Error::Api`] is only the server's message, which goes into events and into the
/// errors of callers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server responded with a failure.
    #[error("{}", .0.message)]
    Api(Box<Status>),
    /// No response: a connection failure, a TLS failure, or a broken body.
    #[error("{action}: {}", error_line(.source.as_ref()))]
    Transport {
        /// The request, such as `GET /api/v1/pods`.
        action: String,
        /// The transport's error.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// No complete response within the time limit.
    #[error("{action}: no response from the API server within {} s", .after.as_secs())]
    Timeout {
        /// The request.
        action: String,
        /// The time limit.
        after: Duration,
    },
    /// The response can't be decoded.
    #[error("{action}: cannot read the response of the API server: {source}")]
    Decode {
        /// The request.
        action: String,
        /// The parse error.
        #[source]
        source: serde_json::Error,
    },
    /// A write that was not sent because this process isn't the leader.
    #[error("{action}: {}", crate::fence::NotLeading)]
    NotLeading {
        /// The request.
        action: String,
    },
    /// A request that was not sent because there are no credentials.
    #[error("{action}: {source}")]
    NoCredentials {
        /// The request.
        action: String,
        /// The reason.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// An invalid request, which was not sent.
    #[error("{0}")]
    InvalidRequest(String),
}

impl Error {
    /// Creates a failure response, for fakes and tests.
    pub fn api(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self::Api(Box::new(Status::failure(code, reason, message)))
    }

    /// Returns the error of a failure response: the server's `Status`, or one derived from the code.
    ///
    /// `verb` is the HTTP method; `name` may be empty.
    pub(crate) fn from_response(
        code: u16,
        body: &[u8],
        verb: &str,
        resource: GroupResource,
        name: &str,
    ) -> Self {
        let status = status_of_response(code, body, verb, resource, name);
        Self::Api(Box::new(status))
    }

    /// Returns the error of a write that conflicts with the stored object.
    ///
    /// Upstream: `apierrors.NewConflict`.
    pub fn conflict(resource: GroupResource, name: &str, reason: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {reason}");
        Self::api(409, "Conflict", message)
    }

    /// Returns the server's response, if there was one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(status) => Some(status),
            _ => None,
        }
    }

    /// Returns true if the object does not exist. Upstream: `apierrors.IsNotFound`.
    pub fn is_not_found(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("NotFound", 404))
    }

    /// Returns true if the object has another version or fails a precondition of the request.
    /// Upstream: `apierrors.IsConflict`.
    pub fn is_conflict(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("Conflict", 409))
    }

    /// Returns true if an object with that name exists. The code never decides this.
    /// Upstream: `apierrors.IsAlreadyExists`.
    pub fn is_already_exists(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// Returns true if validation rejected the object. Upstream: `apierrors.IsInvalid`.
    pub fn is_invalid(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("Invalid", 422))
    }

    /// Returns true if the server rejected the credentials. Upstream: `apierrors.IsUnauthorized`.
    pub fn is_unauthorized(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("Unauthorized", 401))
    }

    /// Returns true if the request is forbidden. Upstream: `apierrors.IsForbidden`.
    pub fn is_forbidden(&self) -> bool {
        self.status()
            .is_some_and(|status| status.is("Forbidden", 403))
    }

    /// Returns true if the identity lacks a permission. Excludes requests forbidden by a quota, a
    /// policy or a terminating namespace.
    pub fn is_missing_right(&self) -> bool {
        self.is_forbidden()
            && self.status().is_some_and(|status| {
                let found = status.message.split_once(" is forbidden: User ");
                found.is_some_and(|(_, rest)| rest.contains(" cannot "))
            })
    }

    /// Returns true if the server failed or is overloaded. A retry may succeed.
    pub fn is_server_failure(&self) -> bool {
        let is_failure = |status: &Status| status.code >= 500 || status.code == 429;
        self.is_too_many_requests() || self.status().is_some_and(is_failure)
    }

    /// Returns true if the cause lies outside this request: the server is unreachable, rejects the
    /// credentials, or denies a permission. The
    /// [`ApiHealthLog`](crate::rest::api_health::ApiHealthLog), or the source of the credentials,
    /// logs such errors; callers don't.
    pub fn is_server_wide(&self) -> bool {
        self.is_transport()
            || self.is_unauthorized()
            || self.is_missing_right()
            || matches!(self, Self::NoCredentials { .. })
    }

    /// Returns true if the connection failed because of TLS.
    pub fn is_tls(&self) -> bool {
        causes(self).any(<dyn StdError>::is::<rustls::Error>)
    }

    /// Returns true if the server asks the client to slow down.
    /// Upstream: `apierrors.IsTooManyRequests`.
    pub fn is_too_many_requests(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "TooManyRequests" || status.code == 429)
    }

    /// Returns true if the requested resource version has expired (HTTP 410).
    /// Upstream: `apierrors.IsResourceExpired` and `IsGone`.
    pub fn is_expired(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "Expired" || status.is("Gone", 410))
    }

    /// Returns the wait after which the write may be sent again, because the server has certainly not
    /// executed it: the server closed the connection before, or responded with 429 and a wait.
    pub fn resend_after(&self) -> Option<Duration> {
        match self {
            Self::Transport { source, .. } => {
                is_not_processed(source.as_ref()).then_some(Duration::ZERO)
            }
            Self::Api(status) if status.code == 429 => status.retry_after(),
            _ => None,
        }
    }

    /// Adds the wait of a response's header, unless its body has one.
    pub(crate) fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        if let (Self::Api(status), Some(wait)) = (&mut self, wait)
            && status.retry_after().is_none()
        {
            status.set_retry_after(wait);
        }
        self
    }

    /// Returns true if the server rejects the shard selector of a list or watch: it supports shards,
    /// but not these. kube-apiserver v1.36 responds with 500.
    pub fn rejects_shard_selector(&self) -> bool {
        self.status().is_some_and(|status| {
            let message = status.message.to_lowercase();
            message.contains("shard selector") || message.contains("shardselector")
        })
    }

    /// Returns true if the server's response is unknown: the request may or may not have been
    /// applied.
    pub fn is_transport(&self) -> bool {
        matches!(self, Self::Transport { .. } | Self::Timeout { .. })
    }
}

#[cfg(test)]
mod tests;
