//! Requests with their body.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method, Request};
use hyper::upgrade::OnUpgrade;
use kube_test_control_plane_api::decode::{self, BodyFormat};
use kube_test_control_plane_api::kinds::Verb;
use kube_test_control_plane_api::options::DeleteOptions;
use kube_test_control_plane_api::query::{self, Query};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::Value;

use crate::auth::{Identity, Sender};
use crate::faults::RequestFacts;
use crate::reply::BoxError;
use crate::transport;

/// The longest timeout that a client can set. It is also upstream's default, while here a
/// request without a timeout has no limit.
const TIME_LIMIT_MAX: Duration = Duration::from_secs(60);

/// Subresources without a time limit.
const LONG_SUBRESOURCES: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// A request with its complete body.
pub(crate) struct Incoming {
    pub method: Method,
    /// The requested host, with an optional port.
    pub host: String,
    /// The unescaped path.
    pub path: String,
    pub(crate) query_text: String,
    pub query: Query,
    pub(crate) headers: HeaderMap,
    /// The body; JSON text is UTF-8.
    pub body: Bytes,
    /// The body as received.
    pub sent: Bytes,
    /// Error from reading the body, if any.
    pub(crate) unreadable: Option<ApiError>,
    pub sender: Sender,
    /// The connection, if the client wants to take it over.
    pub(crate) upgrade: Option<OnUpgrade>,
}

impl Incoming {
    /// Reads a request with its body.
    pub(crate) async fn receive<B>(request: Request<B>, admin: &Arc<Identity>) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        let upgrade = parts.extensions.remove();
        let sender = Sender::of(&parts.extensions, admin);
        let query_text = parts.uri.query().unwrap_or_default().to_owned();
        let query = Query::parse(&query_text);
        let content_type = parts.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let (sent, unreadable) = match transport::read_body(body).await {
            Ok(body) => (body, None),
            Err(err) => (Bytes::new(), Some(err)),
        };
        let body = decode::as_utf8(content_type.unwrap_or_default(), &sent);
        Self {
            method: parts.method,
            host: transport::host(&parts.uri, &parts.headers),
            path: query::decode_path(parts.uri.path()).into_owned(),
            query,
            query_text,
            headers: parts.headers,
            body,
            sent,
            unreadable,
            sender,
            upgrade,
        }
    }

    /// Returns the facts for fault rules and the audit log.
    pub(crate) fn facts(&self, identity: &Identity) -> RequestFacts {
        let mut facts = RequestFacts::new(&self.method, &self.path, &self.query_text);
        facts.name_from(&self.body);
        facts.user.clone_from(&identity.name);
        self.header(USER_AGENT).clone_into(&mut facts.user_agent);
        facts
    }

    pub(crate) fn header(&self, name: http::HeaderName) -> &str {
        let value = self.headers.get(name).and_then(|v| v.to_str().ok());
        value.unwrap_or_default()
    }

    /// Returns the client's timeout for the request; `None` without a timeout or for a long-running
    /// request.
    pub(crate) fn time_limit(&self, facts: &RequestFacts) -> Option<Duration> {
        let is_long = facts.verb == Some(Verb::Watch)
            || LONG_SUBRESOURCES.contains(&facts.subresource.as_str());
        // An invalid duration is rejected later.
        let limit = self.query.timeout().ok().flatten()?;
        let limit = limit.min(TIME_LIMIT_MAX);
        (!is_long && !limit.is_zero()).then_some(limit)
    }

    pub(crate) fn format(&self) -> ApiResult<BodyFormat> {
        BodyFormat::of(self.header(CONTENT_TYPE))
    }

    pub(crate) fn delete_options(&self) -> ApiResult<DeleteOptions> {
        if self.body.is_empty() {
            return DeleteOptions::parse(&self.query, &Value::Null);
        }
        // Upstream reports an unreadable body as an internal error.
        let format = self.format()?;
        let body = decode::value(format, &self.body).map_err(|err| {
            let why = err.message;
            ApiError::internal(match format {
                BodyFormat::Protobuf => why,
                _ => format!("couldn't get version/kind; json parse error: {why}"),
            })
        })?;
        DeleteOptions::parse(&self.query, &body)
    }
}
