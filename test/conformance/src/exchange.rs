//! Requests on their way to a server, and the answers.

use anyhow::Context as _;
use http::header::AUTHORIZATION;
use http::response::Parts;
use http::{HeaderValue, Request};
use kube_test_control_plane::reply::ResponseBody;
use tokio::task::JoinSet;

/// The token that recordings use for the controller's service account.
pub(crate) const CONTROLLER_TOKEN: &str = "stscontrollertoken";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Whoever may do everything.
    #[default]
    Administrator,
    /// A client without credentials.
    Nobody,
    /// Whoever the server knows by this token.
    Token(String),
}

/// An answer whose body may still be coming.
pub(crate) struct Answer {
    pub(crate) parts: Parts,
    pub(crate) body: ResponseBody,
    /// Ends with the answer.
    pub(crate) _connection: JoinSet<()>,
}

/// Puts a bearer token into a request.
///
/// # Errors
///
/// The token holds what no header may hold.
pub(crate) fn authorize<B>(request: &mut Request<B>, token: &str) -> anyhow::Result<()> {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let value = value.context("the token can't stand in a header")?;
    request.headers_mut().insert(AUTHORIZATION, value);
    Ok(())
}
