//! Request handling: authentication, authorization, response.

use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body::Body;
use kube_apimachinery::int_or_string::go_quote;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use tokio::sync::Semaphore;

use super::answer::{self, Answer, Failure};
use super::authentication::Authentication;
use super::authorization::{Authorization, Decision};
use super::endpoints::Endpoints;
use super::user::User;

/// Maximum number of concurrent requests, except those that need no review: they wait for the API
/// server's responses, and hold memory meanwhile.
///
/// Upstream: `MaxRequestsInFlight`.
const IN_FLIGHT_MAX: usize = 400;

/// Handles requests.
///
/// Upstream: `BuildHandlerChain`.
pub(crate) struct Handler {
    pub(super) authentication: Authentication,
    authorization: Authorization,
    pub(super) endpoints: Endpoints,
    in_flight: Semaphore,
}

impl Handler {
    pub(crate) fn new(
        authentication: Authentication,
        authorization: Authorization,
        endpoints: Endpoints,
    ) -> Self {
        Self {
            authentication,
            authorization,
            endpoints,
            in_flight: Semaphore::new(IN_FLIGHT_MAX),
        }
    }

    /// Responds to a request of a client that presented these certificates.
    pub(crate) async fn answer<B>(
        &self,
        chain: &[CertificateDer<'_>],
        request: Request<B>,
    ) -> Answer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        // Authorization and dispatch must use the same decoded path.
        let Some(path) = decoded_path(&parts.uri) else {
            return answer::error(
                StatusCode::BAD_REQUEST,
                "400 Bad Request: the path is not UTF-8",
            );
        };
        let headers = &parts.headers;
        // Probes get a response even under overload.
        let is_probe = self.authorization.is_open(&path) && !headers.contains_key(AUTHORIZATION);
        let permit = self.in_flight.try_acquire();
        if permit.is_err() && !is_probe {
            return too_many();
        }
        let user = match self.authentication.authenticate(chain, headers).await {
            Ok(user) => user,
            Err(reason) => {
                tracing::debug!(path, reason = reason.0, "cannot authenticate the request");
                let failure = Failure {
                    code: StatusCode::UNAUTHORIZED,
                    reason: "Unauthorized",
                    message: "Unauthorized",
                    details: false,
                };
                return failure.answer(headers);
            }
        };
        let verb = parts.method.as_str().to_ascii_lowercase();
        let decision = self.authorization.authorize(&user, &verb, &path);
        match decision.await {
            Ok(Decision::Allow) => self.endpoints.answer(&path, &parts, body).await,
            Ok(Decision::Deny(reason)) => {
                tracing::debug!(path, user = user.name, reason, "a forbidden request");
                let message = forbidden(&user, &verb, &path, &reason);
                let failure = Failure {
                    code: StatusCode::FORBIDDEN,
                    reason: "Forbidden",
                    message: &message,
                    details: true,
                };
                failure.answer(headers)
            }
            Err(error) => {
                let uri = go_quote(&parts.uri.to_string());
                let message = format!("Internal Server Error: {uri}: {error}");
                let message = harmless(&message);
                answer::error(StatusCode::INTERNAL_SERVER_ERROR, &message)
            }
        }
    }
}

/// Upstream: `tooManyRequests`.
fn too_many() -> Answer {
    let message = "Too many requests, please try again later.";
    let mut answer = answer::error(StatusCode::TOO_MANY_REQUESTS, message);
    let headers = answer.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// The path, percent-decoded.
fn decoded_path(uri: &Uri) -> Option<String> {
    let decoded = percent_decode_str(uri.path()).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// Upstream: `ForbiddenStatusError`, `forbiddenMessage`.
fn forbidden(user: &User, verb: &str, path: &str, reason: &str) -> String {
    let (name, path) = (go_quote(&user.name), go_quote(path));
    let message = harmless(&format!("User {name} cannot {verb} path {path}"));
    if reason.is_empty() {
        format!("forbidden: {message}")
    } else {
        format!("forbidden: {message}: {reason}")
    }
}

/// A text that a browser can't interpret as markup. Upstream: `sanitizer`.
fn harmless(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
