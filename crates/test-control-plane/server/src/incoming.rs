//! Requests that have been read.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method};
use kube_test_control_plane_api::decode::{self, BodyFormat};
use kube_test_control_plane_api::kinds::Verb;
use kube_test_control_plane_api::options::DeleteOptions;
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::Value;

use crate::auth::{Identity, Sender};
use crate::faults::RequestFacts;

/// The longest time that a client can set for a request; the reference has it as its default, too,
/// while here a request that sets no limit waits as long as it takes.
const TIME_LIMIT_MAX: Duration = Duration::from_secs(60);

/// What may go on as long as the client wants.
const LONG_SUBRESOURCES: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// A request whose body has been read.
pub struct Incoming {
    pub method: Method,
    /// The host that the client called, perhaps with a port.
    pub host: String,
    /// The path without its escapes.
    pub path: String,
    pub(crate) query_text: String,
    pub query: Query,
    pub(crate) headers: HeaderMap,
    /// The body; JSON text is UTF-8.
    pub body: Bytes,
    /// The body as it came.
    pub sent: Bytes,
    /// Why there is no body, if it couldn't be read.
    pub(crate) unreadable: Option<ApiError>,
    pub sender: Sender,
}

impl Incoming {
    /// What fault rules and the audit log see of it.
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

    /// How long the client lets the server work on the request; none if it sets no limit, or the
    /// request may go on for any time.
    pub(crate) fn time_limit(&self, facts: &RequestFacts) -> Option<Duration> {
        let is_long = facts.verb == Some(Verb::Watch)
            || LONG_SUBRESOURCES.contains(&facts.subresource.as_str());
        // What is no duration is refused later on.
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
        // The reference takes a body that it can't read for an error of its own.
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
