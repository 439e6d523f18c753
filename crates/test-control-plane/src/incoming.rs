//! Requests that have been read.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};
use serde::Deserialize;

use crate::auth::Peer;
use crate::decode::{self, BodyFormat};
use crate::options::DeleteOptions;
use crate::query::Query;
use crate::route::{ResourceRequest, Verb};
use crate::status::ApiResult;

/// A request whose body has been read.
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query_text: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) peer: Option<Peer>,
}

/// As much of a body as tells the name of the object that it creates.
#[derive(Default, Deserialize)]
struct NameOnly {
    #[serde(default)]
    metadata: MetadataNameOnly,
}

#[derive(Default, Deserialize)]
struct MetadataNameOnly {
    #[serde(default)]
    name: String,
}

impl Incoming {
    /// A create with the name that its body tells, for fault rules and the audit log.
    pub(crate) fn named(&self, mut request: ResourceRequest) -> ResourceRequest {
        if request.verb == Verb::Create && request.name.is_empty() {
            let body: NameOnly = serde_json::from_slice(&self.body).unwrap_or_default();
            request.name = body.metadata.name;
        }
        request
    }

    pub(crate) fn header(&self, name: http::HeaderName) -> &str {
        let value = self.headers.get(name).and_then(|v| v.to_str().ok());
        value.unwrap_or_default()
    }

    pub(crate) fn format(&self) -> ApiResult<BodyFormat> {
        BodyFormat::of(self.header(CONTENT_TYPE))
    }

    pub(crate) fn delete_options(&self) -> ApiResult<DeleteOptions> {
        let body = decode::value(self.format()?, &self.body)?;
        DeleteOptions::parse(&self.query, &body)
    }
}
