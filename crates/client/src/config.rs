//! Clients made from flags: the API server's address, the credentials, the request rate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::uri::Scheme;
use http::{HeaderValue, Request, Response, Uri, header};
use kube::client::Body;
pub use kube::config::Config;
use kube::config::{AuthInfo, InClusterError};
use tower::util::option_layer;
use tower::{BoxError, Layer, Service, ServiceExt as _, service_fn};

use crate::error::Error;
use crate::fence::Fence;
use crate::rest::api_health::ApiHealthLog;
use crate::rest::flowcontrol::RateLimitLayer;
use crate::rest::metrics::{ClientMetrics, NoopClientMetrics, RequestMetricsLayer};
use crate::rest::retry::RetryLayer;
use crate::rest::timeout::TimeoutLayer;
use crate::rest::{RestClient, service_of};
use crate::transport::{ServiceAccountToken, Transport};

pub use proxy::ProxyConfig;

mod kubeconfig;
mod proxy;

/// How long the server may take to begin an answer. API servers end requests after 60 s by default.
pub const RESPONSE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(90);

/// Where to find the API server and the credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// A kubeconfig file. Without it and without `master` the pod's service account is used.
    pub kubeconfig: Option<PathBuf>,
    /// The address of the API server; wins over the one in the file.
    pub master: Option<String>,
    /// The proxy of the environment, which this crate doesn't read; used where the kubeconfig names
    /// none.
    pub proxy: ProxyConfig,
}

/// How a client behaves. Each client made from it has its own budget of requests.
#[derive(Clone)]
pub struct ClientOptions {
    /// Requests a second on average; 0 or less for no limit.
    pub qps: f64,
    /// Requests at once.
    pub burst: u32,
    /// What the client calls itself.
    pub user_agent: String,
    /// How long the server may take to begin an answer.
    pub response_timeout: Duration,
    /// Who counts.
    pub metrics: Arc<dyn ClientMetrics>,
    /// What keeps writes from being sent by a process that doesn't lead; none lets all pass.
    pub fence: Option<Fence>,
    /// The log of the server's health; clients of one process share it, so that each fault is
    /// logged once.
    pub api_health: Arc<ApiHealthLog>,
}

impl Default for ClientOptions {
    /// The limits of the reference: 20 requests a second, 30 at once.
    fn default() -> Self {
        Self {
            qps: 20.0,
            burst: 30,
            user_agent: "statefulset-controller".to_owned(),
            response_timeout: RESPONSE_TIMEOUT_DEFAULT,
            metrics: Arc::new(NoopClientMetrics),
            fence: None,
            api_health: Arc::default(),
        }
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there or not readable.
    #[error("cannot read the kubeconfig {}: {source}; check --kubeconfig", .path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is there and of no use.
    #[error("cannot use the kubeconfig {}: {problem}", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, in one line that says nothing of credentials.
        problem: String,
    },
    /// The address is no URL.
    #[error("--master {master:?} is not a URL: {problem}")]
    BadMaster {
        /// What was given.
        master: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The environment names a proxy that is none.
    #[error("cannot use the proxy of the environment: {problem}; check HTTPS_PROXY")]
    BadProxy {
        /// What is wrong with it, in a line that says nothing of its password.
        problem: String,
    },
    /// Neither a file nor a service account.
    #[error(
        "no --kubeconfig, no --master, and not in a cluster: {}; give one of the flags",
        one_line(.source)
    )]
    NotInCluster {
        /// What is missing.
        #[source]
        source: Box<InClusterError>,
    },
    /// The user agent is not allowed in a header.
    #[error("the user agent {0:?} cannot be sent in a header")]
    BadUserAgent(String),
    /// The credentials or certificates are of no use.
    #[error("cannot set up the connection to {server}: {}", one_line(.source.as_ref()))]
    Connection {
        /// The address of the API server.
        server: Uri,
        /// What is wrong.
        #[source]
        source: BoxError,
    },
    /// The server did not answer.
    #[error("cannot reach the API server at {server}: {source}")]
    Unreachable {
        /// The address of the API server.
        server: Uri,
        /// What happened.
        #[source]
        source: Box<Error>,
    },
    /// The server does not accept the credentials.
    #[error(
        "the API server at {server} does not accept the credentials: {source}; \
         check the token or client certificate"
    )]
    Unauthorized {
        /// The address of the API server.
        server: Uri,
        /// What the server said.
        #[source]
        source: Box<Error>,
    },
}

/// An error in one line, as some parsers quote the text around a mistake.
fn one_line(err: &dyn std::error::Error) -> String {
    err.to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Reads where the API server is and who we are. Credentials are for secure servers alone.
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
    // A proxy that the kubeconfig names is for every server.
    if config.proxy_url.is_none() {
        let proxy = source.proxy.proxy_for(&config.cluster_url);
        config.proxy_url = proxy.map_err(|err| ConfigError::BadProxy {
            problem: err.to_string(),
        })?;
    }
    if config.cluster_url.scheme() != Some(&Scheme::HTTPS) {
        config.auth_info = without_credentials(config.auth_info);
    }
    // Re-sends are the business of [`RetryLayer`], which never repeats a write on its own account.
    config.default_retry = false;
    Ok(config)
}

/// What may be sent without encryption: whom to act as.
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
        tracing::warn!("the API server's address is not https: going without credentials");
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
    server_url(master, &Scheme::HTTP).map_err(|problem| ConfigError::BadMaster {
        master: master.to_owned(),
        problem,
    })
}

/// The URL of a server, with this scheme if it names none.
fn server_url(text: &str, scheme_default: &Scheme) -> Result<Uri, String> {
    let url: Result<Uri, _> = if text.contains("://") {
        text.parse()
    } else {
        format!("{scheme_default}://{text}").parse()
    };
    let url = url.map_err(|err| err.to_string())?;
    let is_known = url.scheme() == Some(&Scheme::HTTPS) || url.scheme() == Some(&Scheme::HTTP);
    if is_known && url.host().is_some_and(|host| !host.is_empty()) {
        Ok(url)
    } else {
        Err("neither http:// nor https:// with a host".to_owned())
    }
}

/// Makes a client with its own connections and its own budget. Needs a running tokio runtime.
pub fn client(config: &Config, options: &ClientOptions) -> Result<RestClient, ConfigError> {
    client_over(config, options, Transport::new)
}

/// The same for a client that is a service account: it goes to the server of the configuration,
/// and has none of its credentials. Tokens are for secure servers alone.
pub fn client_of_service_account(
    config: &Config,
    token: ServiceAccountToken,
    options: &ClientOptions,
) -> Result<RestClient, ConfigError> {
    client_over(config, options, |config, fence| {
        if config.cluster_url.scheme() != Some(&Scheme::HTTPS) {
            return Err("tokens of service accounts are sent to https addresses alone".into());
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

/// Puts the rate limit, the retries, the timeout and the fence of a client around a kube client of
/// one's own; see [`layered`] for what of the options that one must have by itself. Needs a running
/// tokio runtime.
pub fn around(client: kube::Client, options: &ClientOptions) -> RestClient {
    layered(service_of(client), options)
}

/// Puts the rate limit, the retries, the timeout and the fence of a client around any service, for
/// example an API server in the same process. The service should resend nothing by itself, and says
/// who asks: the user agent of the options is not looked at. Needs a running tokio runtime.
pub fn layered<S>(service: S, options: &ClientOptions) -> RestClient
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    let metrics = || Arc::clone(&options.metrics);
    let service = service.map_err(Into::<BoxError>::into);
    let service = option_layer(options.fence.clone()).layer(service);
    let timed = TimeoutLayer::new(options.response_timeout, metrics()).layer(service);
    let retry = RetryLayer::new(metrics());
    let whole = RequestMetricsLayer::new(metrics());
    let client = if options.qps > 0.0 {
        let limited = RateLimitLayer::new(options.qps, options.burst, metrics()).layer(timed);
        kube::Client::new(whole.layer(retry.layer(limited)), "default")
    } else {
        kube::Client::new(whole.layer(retry.layer(timed)), "default")
    };
    RestClient::new(client)
        .with_api_health(Arc::clone(&options.api_health))
        .with_fence(options.fence.clone())
}

/// Returns a client that writes only while the fence is open, for controllers that are written with
/// kube and share a lease with this library's.
pub fn fenced(client: kube::Client, fence: &Fence) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_of(client).map_err(BoxError::from);
    kube::Client::new(fence.layer(service), namespace)
}

/// Asks the server for its version, which finds a wrong address or credentials at the start.
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
