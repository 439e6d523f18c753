//! Calls of webhooks, with the messages of upstream's client.
//!
//! Upstream: `Request.Do` of `k8s.io/client-go/rest`, as `ClientManager` configures it

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use kube_test_control_plane_api::admission::webhooks::{ClientConfig, Reply, Target};
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_store::store::StoreReader;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use super::connection;
use super::dial::{Address, dial};
use super::services::{Handler, Place, WebhookServices};
use crate::faults::{CalledWebhook, Faults};

/// The most attempts of a call whose responses ask for a later one, besides the first.
const RETRIES_MAX: usize = 10;

const AGENT: &str = "kube-apiserver-admission";
const JSON: &str = "application/json";
const ACCEPTED: &str = "application/json, */*";

/// A call of a webhook.
pub(crate) struct Call<'a> {
    pub(crate) called: CalledWebhook<'a>,
    pub(crate) config: &'a ClientConfig,
    /// The time limit.
    pub(crate) limit: Duration,
    /// The message after the time limit.
    pub(crate) expired: &'a str,
    /// The review.
    pub(crate) body: Bytes,
}

/// Calls webhooks.
#[derive(Debug)]
pub(crate) struct WebhookClient {
    faults: Faults,
    services: WebhookServices,
    store: StoreReader,
}

/// The way to a webhook.
enum Way {
    /// A handler in this process.
    Handler(Handler),
    /// A server with TLS.
    Tls(Address),
}

impl WebhookClient {
    pub(super) fn new(services: WebhookServices, store: StoreReader, faults: Faults) -> Self {
        Self {
            faults,
            services,
            store,
        }
    }

    /// Returns the services of the webhooks.
    pub(crate) fn services(&self) -> &WebhookServices {
        &self.services
    }

    /// Posts a review and returns the response.
    ///
    /// The future has no own type, which would be part of that of nearly every request.
    ///
    /// # Errors
    ///
    /// There is no complete response within the time limit. The text is upstream's.
    pub(crate) fn post<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, String>> {
        let Call {
            called,
            config,
            limit,
            expired,
            body,
        } = call;
        let url = config.url(limit);
        let decided = self.faults.decide_call(called);
        let call = async move {
            let address = config.target.authority();
            let posted = Box::pin(self.post_until_final(config, &url, body));
            let called = timeout(limit, decided.carry_out(&address, posted)).await;
            let called = called.unwrap_or_else(|_| Err(expired.to_owned()));
            let response = called.map_err(|why| format!("Post {url:?}: {why}"))?;
            let content_type = response.headers().get(CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            Ok(Reply {
                code: response.status().as_u16(),
                content_type: content_type.unwrap_or_default().to_owned(),
                body: response.into_body(),
            })
        };
        call.boxed()
    }

    /// Posts until the response doesn't ask for a later attempt.
    async fn post_until_final(
        &self,
        config: &ClientConfig,
        url: &str,
        body: Bytes,
    ) -> Result<Response<Bytes>, String> {
        for _ in 0..RETRIES_MAX {
            let response = self.post_once(config, url, body.clone()).await?;
            let Some(delay) = delay(&response) else {
                return Ok(response);
            };
            sleep(delay).await;
        }
        self.post_once(config, url, body).await
    }

    async fn post_once(
        &self,
        config: &ClientConfig,
        url: &str,
        body: Bytes,
    ) -> Result<Response<Bytes>, String> {
        let way = self.way(&config.target)?;
        let request = request(config, url, body)?;
        match way {
            Way::Handler(handler) => {
                let response = handler.oneshot(request).await;
                response.map_err(|error| error.to_string())
            }
            Way::Tls(address) => {
                let socket = dial(&address).await?;
                let name = config.target.server_name();
                connection::exchange(socket, &name, &config.ca_bundle, request).await
            }
        }
    }

    /// Returns the way to a server.
    ///
    /// # Errors
    ///
    /// There is no such service, or nothing runs behind it.
    fn way(&self, target: &Target) -> Result<Way, String> {
        let (namespace, name, port) = match target {
            Target::Host(_) => {
                let (host, port) = (target.server_name(), target.port());
                return Ok(Way::Tls(Address::Host(host, port)));
            }
            Target::Service {
                namespace,
                name,
                port,
            } => (namespace, name, port),
        };
        match self.services.find(namespace, name) {
            Some(Place::Handler(handler)) => return Ok(Way::Handler(handler)),
            Some(Place::Address(address)) => return Ok(Way::Tls(Address::Socket(address))),
            None => {}
        }
        let service = self.store.get(&Key::of("services", namespace, name));
        let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
        tracing::warn!(
            namespace,
            name,
            "nothing runs behind a webhook's service: give it a handler or an address"
        );
        let service = service.value();
        let ip = service
            .pointer("/spec/clusterIP")
            .and_then(|ip| ip.as_str());
        let ip = ip.unwrap_or_default();
        Err(format!("dial tcp {ip}:{port}: connect: connection refused"))
    }
}

/// Returns the request of a call.
fn request(config: &ClientConfig, url: &str, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
    let authority = config.target.authority();
    let path = url.split_once(&*authority).map_or(url, |(_, path)| path);
    let request = Request::post(path)
        .header(HOST, &authority)
        .header(ACCEPT, ACCEPTED)
        .header(CONTENT_TYPE, JSON)
        .header(USER_AGENT, AGENT)
        .body(Full::new(body));
    request.map_err(|error| error.to_string())
}

/// Returns the time until the next attempt, if the response asks for one.
///
/// Upstream: `checkWait`
fn delay(response: &Response<Bytes>) -> Option<Duration> {
    let code = response.status().as_u16();
    let is_busy = code == 429 || (500..600).contains(&code);
    let seconds = is_busy.then(|| retry_after(response.headers())).flatten();
    seconds.map(Duration::from_secs)
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()
}
