//! Requests to the API server, with raw JSON text in both directions.
//!
//! Callers decode the text, so that fields unknown to this project's types are never lost.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube_apimachinery::json::Document;
use tower::{BoxError, Service, ServiceExt as _};

use crate::error::Error;
use crate::fence::Fence;
use crate::not_processed::ResponseCut;
use crate::resource::Resource;
use api_health::{ApiHealthLog, Right};
use call::{AtOnce, Call, object_target, transport_error};
use reports::Reports;

pub use list::{ListMetadata, ListStream};
pub use options::{ListOptions, MediaType, PatchType, Selectors, WatchOptions};
pub use read_only::OnlyReads;
pub(crate) use read_only::ReadOnlyLayer;
pub use service::AnswerBody;
pub(crate) use service::{RequestService, boxed_service, service_of};
pub use watch::{JsonObject, WatchEvent, WatchObject, WatchStream};

pub mod api_health;
mod call;
pub mod flowcontrol;
mod list;
pub mod metrics;
mod options;
mod read_only;
mod reports;
pub mod retry;
mod service;
pub mod timeout;
pub mod unprocessed;
mod watch;

/// Default time limit from a response's first byte to its last. [`crate::rest::timeout`] limits the
/// time until the first byte, and watches have their own limit.
pub const BODY_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// Time after which a pending request, retries included, is logged as without a response. Shorter than the
/// default response timeout, so a hanging server is logged before its first attempt times out.
const UNANSWERED_MAX: Duration = Duration::from_secs(60);

/// Sends requests for [`Resource`]s through a [`kube::Client`].
///
/// Every error is a classified [`Error`]. Nothing is retried here (see [`crate::rest::retry`]). An
/// [`ApiHealthLog`] logs faults that affect more than one request, once.
#[derive(Clone)]
pub struct RestClient {
    service: RequestService,
    body_timeout: Duration,
    media_type: MediaType,
    reports: Reports,
}

impl RestClient {
    /// Creates a client that sends through a plain kube client. [`crate::config::around`] adds
    /// limits, retries, a timeout and a fence.
    pub fn new(client: kube::Client) -> Self {
        Self::from_service(service_of(client))
    }

    /// Creates a client that sends through any service, such as an in-process API server. Unlike
    /// [`RestClient::new`], it involves no other task, so an immediate response stays immediate.
    pub fn from_service<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self {
            service: boxed_service(service),
            body_timeout: BODY_TIMEOUT_DEFAULT,
            media_type: MediaType::Protobuf,
            reports: Reports::default(),
        }
    }

    /// Returns a client for writes that depend on a read just before them. Its requests skip the
    /// rate limiter's wait but use up its tokens, so later requests wait longer. They are never
    /// sent again: the caller repeats the read first ([`Resends`](retry::Resends)).
    #[must_use]
    pub fn at_once(&self) -> Self {
        let mut client = self.clone();
        client.reports.at_once = Some(AtOnce);
        client
    }

    /// Reports to this health log. By default a client shares a log only with its clones.
    #[must_use]
    pub fn with_api_health(mut self, health: Arc<ApiHealthLog>) -> Self {
        self.reports.health = health;
        self
    }

    /// Sets the preferred format of watched objects. The default is protobuf.
    #[must_use]
    pub fn with_media_type(mut self, media_type: MediaType) -> Self {
        self.media_type = media_type;
        self
    }

    /// Returns the preferred format of watched objects.
    pub fn media_type(&self) -> MediaType {
        self.media_type
    }

    /// Sets the fence inside the client's retry layer.
    #[must_use]
    pub(crate) fn with_fence(mut self, fence: Option<Fence>) -> Self {
        self.reports.fence = fence;
        self
    }

    /// Sets the time limit for the body of every response except a watch's.
    #[must_use]
    pub fn with_body_timeout(mut self, body_timeout: Duration) -> Self {
        self.body_timeout = body_timeout;
        self
    }

    /// Gets one object, uncached.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<String, Error> {
        let target = object_target(resource, namespace, name, "")?;
        self.text(Call::new(Method::GET, resource, name, target))
            .await
    }

    /// Gets one object, uncached, with the bytes that the server sent.
    pub async fn get_document(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Document, Error> {
        let target = object_target(resource, namespace, name, "")?;
        self.document(Call::new(Method::GET, resource, name, target))
            .await
    }

    /// Creates an object and returns it as stored.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        body: String,
    ) -> Result<String, Error> {
        let target = resource.collection_path(namespace);
        self.text(Call {
            body: body.into_bytes(),
            ..Call::new(Method::POST, resource, "", target)
        })
        .await
    }

    /// Asks the server whether it would create an object; nothing is stored.
    pub async fn dry_run_create(
        &self,
        resource: &Resource,
        namespace: &str,
        body: String,
    ) -> Result<String, Error> {
        let target = resource.collection_path(namespace) + "?dryRun=All";
        self.text(Call {
            body: body.into_bytes(),
            ..Call::new(Method::POST, resource, "", target)
        })
        .await
    }

    /// Creates a subresource of an object, such as `token`, and returns the response.
    pub async fn create_subresource(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: String,
    ) -> Result<String, Error> {
        let target = object_target(resource, namespace, name, &format!("/{subresource}"))?;
        self.text(Call {
            body: body.into_bytes(),
            ..Call::new(Method::POST, resource, name, target)
        })
        .await
    }

    /// Replaces an object and returns it as stored. The body is JSON; its strings may contain
    /// invalid UTF-8, as received from the server.
    pub async fn replace(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        body: impl Into<Vec<u8>>,
    ) -> Result<String, Error> {
        let target = object_target(resource, namespace, name, "")?;
        self.text(Call {
            body: body.into(),
            ..Call::new(Method::PUT, resource, name, target)
        })
        .await
    }

    /// Replaces an object's status and returns the object as stored.
    pub async fn replace_status(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        body: String,
    ) -> Result<String, Error> {
        let target = object_target(resource, namespace, name, "/status")?;
        self.text(Call {
            body: body.into_bytes(),
            ..Call::new(Method::PUT, resource, name, target)
        })
        .await
    }

    /// Patches an object and returns it as stored.
    pub async fn patch(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        patch_type: PatchType,
        body: String,
    ) -> Result<String, Error> {
        let target = object_target(resource, namespace, name, "")?;
        self.patch_target(resource, name, target, patch_type, body)
            .await
    }

    /// Patches a subresource of an object, such as `resize`, and returns the object as stored.
    pub async fn patch_subresource(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        subresource: &str,
        patch_type: PatchType,
        body: String,
    ) -> Result<String, Error> {
        let target = object_target(resource, namespace, name, &format!("/{subresource}"))?;
        self.patch_target(resource, name, target, patch_type, body)
            .await
    }

    async fn patch_target(
        &self,
        resource: &Resource,
        name: &str,
        target: String,
        patch_type: PatchType,
        body: String,
    ) -> Result<String, Error> {
        let content_type = patch_type.content_type();
        let call = Call::new(Method::PATCH, resource, name, target);
        self.text(Call {
            body: body.into_bytes(),
            content_type,
            ..call
        })
        .await
    }

    /// Deletes an object; `options` is a `DeleteOptions` object. Returns the object's current state
    /// or the server's `Status`.
    pub async fn delete(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        options: String,
    ) -> Result<String, Error> {
        let target = object_target(resource, namespace, name, "")?;
        let call = Call::new(Method::DELETE, resource, name, target);
        self.text(Call {
            body: options.into_bytes(),
            ..call
        })
        .await
    }

    /// Lists one page of a collection. Without a resource version in the options the response is
    /// consistent: at least as new as any write acknowledged before the call. If the server rejects
    /// the shard selector, the page holds the objects of all shards. Returns errors of the request
    /// itself; the stream returns later ones.
    pub async fn list(
        &self,
        resource: &Resource,
        options: &ListOptions,
    ) -> Result<ListStream, Error> {
        let call = |shard_selector: &str| {
            let target = options.target(resource, shard_selector);
            Call::new(Method::GET, resource, "", target)
        };
        let (response, action, right) = self.read_shard(&options.shard_selector, call).await?;
        Ok(ListStream::new(
            response.into_body(),
            self.body_timeout,
            self.reports.clone(),
            action,
            right,
        ))
    }

    /// Opens a watch, of all shards if the server rejects the shard selector. Returns errors of the
    /// request itself; the stream returns later ones.
    pub async fn watch(
        &self,
        resource: &Resource,
        options: &WatchOptions,
    ) -> Result<WatchStream, Error> {
        let call = |shard_selector: &str| {
            let target = options.target(resource, shard_selector);
            Call {
                accept: options.media_type.accept(),
                ..Call::new(Method::GET, resource, "", target)
            }
        };
        let (response, action, _) = self.read_shard(&options.shard_selector, call).await?;
        Ok(WatchStream::new(response, action))
    }

    /// Sends a list or watch of a shard, without its selector once the server has rejected one.
    async fn read_shard<'a>(
        &self,
        shard_selector: &str,
        call: impl Fn(&str) -> Call<'a>,
    ) -> Result<(Response<AnswerBody>, String, Right), Error> {
        if !shard_selector.is_empty() && !self.reports.health.shards_are_rejected() {
            let selected = call(shard_selector);
            let (action, right) = (selected.action(), selected.right());
            match self.send(selected, &action, &right).await {
                Err(err) if err.rejects_shard_selector() => {
                    self.reports.health.shards_rejected(&err);
                }
                sent => return sent.map(|response| (response, action, right)),
            }
        }
        let call = call("");
        let (action, right) = (call.action(), call.right());
        let response = self.send(call, &action, &right).await?;
        Ok((response, action, right))
    }

    /// Gets any path of the server, such as `/version`.
    pub async fn get_path(&self, path: &str) -> Result<String, Error> {
        let nothing = Resource {
            group: "",
            version: "",
            plural: "",
            kind: "",
        };
        self.text(Call::new(Method::GET, &nothing, "", path.to_owned()))
            .await
    }

    async fn text(&self, call: Call<'_>) -> Result<String, Error> {
        self.document(call).await.map(Document::into_text)
    }

    async fn document(&self, call: Call<'_>) -> Result<Document, Error> {
        let (action, right) = (call.action(), call.right());
        let response = self.send(call, &action, &right).await?;
        let body = self.read_body(response, &action).await;
        let body = body.inspect_err(|err| self.reports.failed(&right, err))?;
        Ok(Document::new(body.into()))
    }

    async fn read_body(
        &self,
        response: Response<AnswerBody>,
        action: &str,
    ) -> Result<Bytes, Error> {
        let collecting = response.into_body().collect();
        match tokio::time::timeout(self.body_timeout, collecting).await {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(err)) => Err(transport_error(action, Box::new(ResponseCut(err)))),
            Err(_) => Err(Error::Timeout {
                action: action.to_owned(),
                after: self.body_timeout,
            }),
        }
    }

    /// Sends a request and returns the response if it succeeds.
    async fn send(
        &self,
        call: Call<'_>,
        action: &str,
        right: &Right,
    ) -> Result<Response<AnswerBody>, Error> {
        let mut sending = pin!(self.send_unreported(call, action));
        let answered = tokio::time::timeout(UNANSWERED_MAX, &mut sending).await;
        let sent = if let Ok(sent) = answered {
            sent
        } else {
            self.reports.health.unanswered(right, UNANSWERED_MAX);
            sending.await
        };
        match &sent {
            Ok(_) => self.reports.health.succeeded(right),
            Err(err) => self.reports.failed(right, err),
        }
        sent
    }

    async fn send_unreported(
        &self,
        call: Call<'_>,
        action: &str,
    ) -> Result<Response<AnswerBody>, Error> {
        let (method, resource, name) = (call.method.clone(), call.resource, call.name);
        let mut request = call.into_request(action)?;
        if let Some(mark) = self.reports.at_once {
            request.extensions_mut().insert(mark);
        }
        let sent = self.service.clone().oneshot(request).await;
        let response = sent.map_err(|err| transport_error(action, err))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry::retry_after(response.headers());
        let body = self.read_body(response, action).await?;
        let (code, group_resource) = (status.as_u16(), resource.group_resource());
        let error = Error::from_response(code, &body, method.as_str(), group_resource, name);
        Err(error.with_retry_after(retry_after))
    }
}

#[cfg(test)]
mod tests;
