//! Builds clients from flags: the API server's address, the credentials, the rate limit.

use std::sync::Arc;

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderValue, Request, Response, Uri, header};
use kube::client::Body;
use kube::config::AuthInfo;
pub use kube::config::Config;
use tower::util::option_layer;
use tower::{BoxError, Layer, Service, ServiceExt as _, service_fn};

use crate::fence::Fence;
use crate::rest::flowcontrol::RateLimitLayer;
use crate::rest::metrics::RequestMetricsLayer;
use crate::rest::retry::RetryLayer;
use crate::rest::timeout::TimeoutLayer;
use crate::rest::unprocessed::ResendLayer;
use crate::rest::{ReadOnlyLayer, RestClient, service_of};
use crate::transport::{ServiceAccountToken, Transport};

pub use error::{ConfigError, KubeconfigProblem, ServerUrlError};
pub use options::{ClientOptions, RESPONSE_TIMEOUT_DEFAULT, Source};
pub use proxy::{ProxyConfig, ProxyError};

mod error;
mod kubeconfig;
mod options;
mod proxy;

/// Reads the server's address and the credentials. Credentials are sent only to https servers.
///
/// Upstream: `clientcmd.BuildConfigFromFlags`.
#[expect(
    clippy::unused_async,
    reason = "reading files may move off the caller's thread without a change for callers"
)]
pub async fn load(source: &Source) -> Result<Config, ConfigError> {
    let master = source.master.as_deref().map(parse_master).transpose()?;
    let mut config = match (&source.kubeconfig, master) {
        (Some(path), _) => kubeconfig::read(path, source.master.as_deref())?,
        (None, Some(master)) => Config::new(master),
        (None, None) => Config::incluster_env().map_err(|source| ConfigError::NotInCluster {
            source: Box::new(source),
        })?,
    };
    // A kubeconfig's proxy applies to every server.
    if config.proxy_url.is_none() {
        let proxy = source.proxy.proxy_for(&config.cluster_url);
        config.proxy_url = proxy.map_err(|source| ConfigError::BadProxy { source })?;
    }
    if config.cluster_url.scheme() != Some(&Scheme::HTTPS) {
        config.auth_info = without_credentials(config.auth_info);
    }
    // Retries are up to [`RetryLayer`], which never repeats a write without the server's request.
    config.default_retry = false;
    Ok(config)
}

/// Keeps only the impersonated user, which may be sent unencrypted.
///
/// Upstream: `DirectClientConfig.ClientConfig`, `rest.IsConfigTransportTLS`.
fn without_credentials(info: AuthInfo) -> AuthInfo {
    let has_credentials = [
        info.username.is_some(),
        info.token.is_some(),
        info.token_file.is_some(),
        info.client_certificate.is_some(),
        info.client_certificate_data.is_some(),
        info.auth_provider.is_some(),
        info.exec.is_some(),
    ];
    if has_credentials.contains(&true) {
        tracing::warn!("the API server's address is not https: sending no credentials");
    }
    AuthInfo {
        impersonate: info.impersonate,
        impersonate_uid: info.impersonate_uid,
        impersonate_groups: info.impersonate_groups,
        impersonate_user_extra: info.impersonate_user_extra,
        ..AuthInfo::default()
    }
}

fn parse_master(master: &str) -> Result<Uri, ConfigError> {
    kubeconfig::server_url(master, &Scheme::HTTP).map_err(|source| ConfigError::BadMaster {
        master: master.to_owned(),
        source,
    })
}

/// Creates a client with its own connections and rate limit. Needs a running tokio runtime.
pub fn client(config: &Config, options: &ClientOptions) -> Result<RestClient, ConfigError> {
    client_over(config, options, Transport::new)
}

/// Same as [`client`], but authenticates as a service account instead of with the configuration's
/// credentials. Tokens are sent only to https servers.
pub fn client_of_service_account(
    config: &Config,
    token: ServiceAccountToken,
    options: &ClientOptions,
) -> Result<RestClient, ConfigError> {
    client_over(config, options, |config, fence| {
        if config.cluster_url.scheme() != Some(&Scheme::HTTPS) {
            return Err("service account tokens are sent only to https servers".into());
        }
        Transport::of_service_account(config, fence, token)
    })
}

fn client_over(
    config: &Config,
    options: &ClientOptions,
    connect: impl FnOnce(Config, Option<Fence>) -> Result<Transport, BoxError>,
) -> Result<RestClient, ConfigError> {
    let mut config = config.clone();
    let user_agent = HeaderValue::from_str(&options.user_agent)
        .map_err(|_| ConfigError::BadUserAgent(options.user_agent.clone()))?;
    config.headers.push((header::USER_AGENT, user_agent));
    let server = config.cluster_url.clone();
    let transport = connect(config, options.fence.clone())
        .map_err(|source| ConfigError::Connection { server, source })?;
    let service = service_fn(move |request| {
        let transport = transport.clone();
        async move { transport.send(request).await }
    });
    Ok(layered(service, options))
}

/// Wraps a given kube client with the rate limit, the retries, the timeout and the fence. See
/// [`layered`] for the options that the given client must handle itself. Needs a running tokio
/// runtime.
pub fn around(client: kube::Client, options: &ClientOptions) -> RestClient {
    layered(service_of(client), options)
}

/// Wraps any service with the rate limit, the retries, the timeout and the fence, for example an
/// API server in the same process. The service should not retry, and must set the `User-Agent`
/// itself: the option is ignored. Needs a running tokio runtime.
pub fn layered<S, B>(service: S, options: &ClientOptions) -> RestClient
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let metrics = || Arc::clone(&options.metrics);
    let service = service.map_err(Into::<BoxError>::into);
    let service = option_layer(options.is_read_only.then_some(ReadOnlyLayer)).layer(service);
    let service = option_layer(options.fence.clone()).layer(service);
    let service = ResendLayer.layer(service);
    let timed = TimeoutLayer::new(options.response_timeout, metrics()).layer(service);
    let retry = RetryLayer::new(metrics());
    let whole = RequestMetricsLayer::new(metrics());
    let client = if options.qps > 0.0 {
        let limited = RateLimitLayer::new(options.qps, options.burst, metrics()).layer(timed);
        RestClient::from_service(whole.layer(retry.layer(limited)))
    } else {
        RestClient::from_service(whole.layer(retry.layer(timed)))
    };
    client
        .with_media_type(options.media_type)
        .with_api_health(Arc::clone(&options.api_health))
        .with_fence(options.fence.clone())
}

/// Returns a kube client that writes only while the fence is open, for controllers that are written
/// with kube and share a lease with this library's. It sends each request once: kube's own retries
/// would come after the fence.
pub fn fenced(mut config: Config, fence: &Fence) -> Result<kube::Client, ConfigError> {
    config.default_retry = false;
    let (namespace, server) = (config.default_namespace.clone(), config.cluster_url.clone());
    let client = kube::Client::try_from(config).map_err(|source| ConfigError::Connection {
        server,
        source: source.into(),
    })?;
    let service = service_of(client).map_err(BoxError::from);
    Ok(kube::Client::new(fence.layer(service), namespace))
}

/// Requests the server's version, to detect a wrong address or wrong credentials at startup.
pub async fn check(client: &RestClient, server: &Uri) -> Result<String, ConfigError> {
    client.get_path("/version").await.map_err(|source| {
        let (server, source) = (server.clone(), Box::new(source));
        if source.is_unauthorized() {
            ConfigError::Unauthorized { server, source }
        } else {
            ConfigError::Unreachable { server, source }
        }
    })
}

#[cfg(test)]
mod tests;
