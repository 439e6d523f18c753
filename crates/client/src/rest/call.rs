//! A request before it is sent, and the errors of requests without a response.

use std::error::Error as StdError;

use http::{Method, Request, header};
use kube::client::Body;

use super::MediaType;
use super::api_health::Right;
use super::timeout::ResponseTimeout;
use crate::causes::causes;
use crate::error::{Error, NoToken};
use crate::fence::NotLeading;
use crate::resource::Resource;

/// The content type of every body except a patch.
const JSON: &str = MediaType::Json.name();

/// Mark of a request that no layer delays or sends again.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce;

/// A request before it is sent.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) resource: &'a Resource,
    pub(super) name: &'a str,
    /// Path and query.
    pub(super) target: String,
    pub(super) body: Vec<u8>,
    pub(super) content_type: &'static str,
    /// The accepted media types.
    pub(super) accept: &'static str,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        method: Method,
        resource: &'a Resource,
        name: &'a str,
        target: String,
    ) -> Self {
        Self {
            method,
            resource,
            name,
            target,
            body: Vec::new(),
            content_type: JSON,
            accept: JSON,
        }
    }

    /// Returns the method and the path without its query, for errors.
    pub(super) fn action(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        [self.method.as_str(), path].join(" ")
    }

    pub(super) fn right(&self) -> Right {
        Right::of(&self.method, &self.resource.group_resource(), &self.target)
    }

    pub(super) fn into_request(self, action: &str) -> Result<Request<Body>, Error> {
        let mut builder = Request::builder()
            .method(self.method)
            .uri(self.target)
            .header(header::ACCEPT, self.accept);
        if !self.body.is_empty() {
            builder = builder.header(header::CONTENT_TYPE, self.content_type);
        }
        builder
            .body(Body::from(self.body))
            .map_err(|err| Error::InvalidRequest(format!("{action}: {err}")))
    }
}

/// Returns the error of a request without a response.
pub(super) fn transport_error(action: &str, source: Box<dyn StdError + Send + Sync>) -> Error {
    let action = action.to_owned();
    let first: &(dyn StdError + 'static) = source.as_ref();
    if causes(first).any(<dyn StdError>::is::<NotLeading>) {
        return Error::NotLeading { action };
    }
    if causes(first).any(<dyn StdError>::is::<NoToken>) {
        return Error::NoCredentials { action, source };
    }
    let timeout = causes(first).find_map(|err| err.downcast_ref::<ResponseTimeout>());
    match timeout.map(|timeout| timeout.after) {
        Some(after) => Error::Timeout { action, after },
        None => Error::Transport { action, source },
    }
}

/// Returns an object's path. Rejects names that would change the path.
///
/// Upstream: `Request.Name`, `rest.IsValidPathSegmentName`.
pub(super) fn object_target(
    resource: &Resource,
    namespace: &str,
    name: &str,
    suffix: &str,
) -> Result<String, Error> {
    if name.is_empty() {
        return Err(Error::InvalidRequest(
            "resource name may not be empty".to_owned(),
        ));
    }
    for segment in [namespace, name] {
        if segment == "." || segment == ".." || segment.contains(['/', '%', '?', '#']) {
            let text = format!("invalid resource name {segment:?}: not a path segment");
            return Err(Error::InvalidRequest(text));
        }
    }
    Ok(resource.object_path(namespace, name) + suffix)
}
