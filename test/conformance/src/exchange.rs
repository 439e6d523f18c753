//! Requests and responses in flight.

use anyhow::Context as _;
use http::header::AUTHORIZATION;
use http::response::Parts;
use http::{HeaderValue, Request};
use kube_test_control_plane::reply::ResponseBody;
use tokio::task::JoinSet;

/// Token of the controller's service account in recordings.
pub(crate) const CONTROLLER_TOKEN: &str = "stscontrollertoken";

/// Credentials of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A user with all permissions.
    #[default]
    Administrator,
    /// None.
    Nobody,
    /// A bearer token.
    Token(String),
}

/// A response whose body may still be incomplete.
pub(crate) struct Answer {
    pub(crate) parts: Parts,
    pub(crate) body: ResponseBody,
    /// Drives the connection; ends with the response.
    pub(crate) _connection: JoinSet<()>,
}

/// Adds a bearer token to a request.
///
/// # Errors
///
/// The token has characters that headers don't allow.
pub(crate) fn authorize<B>(request: &mut Request<B>, token: &str) -> anyhow::Result<()> {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let value = value.context("the token is not a valid header value")?;
    request.headers_mut().insert(AUTHORIZATION, value);
    Ok(())
}
