//! From flags to a client: where the API server is, who we are, how often we may ask.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::uri::Scheme;
use http::{HeaderValue, Request, Response, Uri, header};
use kube::client::Body;
use kube::config::{
    Cluster, Config, Context, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError,
    NamedCluster, NamedContext,
};
use tower::util::option_layer;
use tower::{BoxError, Layer, Service, service_fn};

use crate::error::Error;
use crate::flowcontrol::RateLimitLayer;
use crate::leaderelection::Fence;
use crate::metrics::{ClientMetrics, NoopClientMetrics, RequestMetricsLayer};
use crate::rest::RestClient;
use crate::retry::RetryLayer;
use crate::server_state::ServerState;
use crate::timeout::TimeoutLayer;
use crate::transport::Transport;

/// How long the server may take to begin an answer. API servers end requests after 60 s by default.
pub const RESPONSE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(90);

/// Where to find the API server and the credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// A kubeconfig file. Without it and without `master` the pod's service account is used.
    pub kubeconfig: Option<PathBuf>,
    /// The address of the API server; wins over the one in the file.
    pub master: Option<String>,
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
    /// Who tells when the server can't be reached; one for all clients of a process, so that it is
    /// told once.
    pub server_state: Arc<ServerState>,
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
            server_state: Arc::default(),
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
    #[error("cannot use the kubeconfig {}: {}", .path.display(), one_line(.source))]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// The address is no URL.
    #[error("--master {master:?} is not a URL: {source}")]
    BadMaster {
        /// What was given.
        master: String,
        /// What is wrong with it.
        #[source]
        source: http::uri::InvalidUri,
    },
    /// The environment names a proxy that is none.
    #[error("cannot use the proxy of the environment: {}; check HTTPS_PROXY and NO_PROXY", one_line(.source))]
    BadProxy {
        /// What is wrong with it.
        #[source]
        source: Box<KubeconfigError>,
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

/// Reads where the API server is and who we are.
///
/// Upstream: `clientcmd.BuildConfigFromFlags`.
pub async fn load(source: &Source) -> Result<Config, ConfigError> {
    let mut config = match (&source.kubeconfig, &source.master) {
        (Some(path), _) => read_kubeconfig(path).await?,
        (None, Some(master)) => {
            let config = Config::new(parse_master(master)?);
            with_proxy_of_environment(config).await?
        }
        (None, None) => {
            let config = Config::incluster_env().map_err(|source| ConfigError::NotInCluster {
                source: Box::new(source),
            })?;
            with_proxy_of_environment(config).await?
        }
    };
    if let Some(master) = &source.master {
        config.cluster_url = parse_master(master)?;
    }
    // Re-sends are the business of [`RetryLayer`], which never repeats a write on its own account.
    config.default_retry = false;
    Ok(config)
}

async fn read_kubeconfig(path: &Path) -> Result<Config, ConfigError> {
    let bad_file = |source| ConfigError::BadFile {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(|err| match err {
        KubeconfigError::ReadConfig(source, path) => ConfigError::ReadFile { path, source },
        other => bad_file(other),
    })?;
    let cluster = current_cluster(&kubeconfig);
    let authority = cluster.and_then(authority_file);
    let names_proxy = cluster.is_some_and(|cluster| cluster.proxy_url.is_some());
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(bad_file)?;
    config.root_cert_file = authority;
    if !names_proxy && !may_be_proxied(&config.cluster_url) {
        config.proxy_url = None;
    }
    Ok(config)
}

/// Whether the proxy of the environment is for this server: a secure one that is not on this
/// machine.
///
/// Upstream: `httpproxy.Config.ProxyFunc`.
fn may_be_proxied(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default();
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let is_local = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    server.scheme() == Some(&Scheme::HTTPS) && !is_local
}

/// The cluster of the current context.
fn current_cluster(kubeconfig: &Kubeconfig) -> Option<&Cluster> {
    let name = kubeconfig.current_context.as_ref()?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts
        .find(|named| &named.name == name)?
        .context
        .as_ref()?;
    let mut clusters = kubeconfig.clusters.iter();
    let named = clusters.find(|named| named.name == context.cluster)?;
    named.cluster.as_ref()
}

/// The file of the certificate authority, which is read again from time to time; none where the
/// authority stands in the kubeconfig itself.
fn authority_file(cluster: &Cluster) -> Option<PathBuf> {
    let is_inline = cluster.certificate_authority_data.is_some();
    let file = cluster.certificate_authority.as_ref();
    file.filter(|file| !is_inline && !file.is_empty())
        .map(PathBuf::from)
}

/// The configuration with the proxy that the environment names for its server. A kubeconfig gets
/// it in the same way when it is read.
///
/// Upstream: `http.ProxyFromEnvironment`.
async fn with_proxy_of_environment(mut config: Config) -> Result<Config, ConfigError> {
    if !may_be_proxied(&config.cluster_url) {
        return Ok(config);
    }
    let name = || "server".to_owned();
    let kubeconfig = Kubeconfig {
        clusters: vec![NamedCluster {
            name: name(),
            cluster: Some(Cluster {
                server: Some(config.cluster_url.to_string()),
                ..Cluster::default()
            }),
            ..NamedCluster::default()
        }],
        contexts: vec![NamedContext {
            name: name(),
            context: Some(Context {
                cluster: name(),
                ..Context::default()
            }),
            ..NamedContext::default()
        }],
        current_context: Some(name()),
        ..Kubeconfig::default()
    };
    let options = KubeConfigOptions::default();
    let like = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|source| ConfigError::BadProxy {
            source: Box::new(source),
        })?;
    config.proxy_url = like.proxy_url;
    Ok(config)
}

fn parse_master(master: &str) -> Result<Uri, ConfigError> {
    let with_scheme = if master.contains("://") {
        master.to_owned()
    } else {
        format!("http://{master}")
    };
    with_scheme
        .parse()
        .map_err(|source| ConfigError::BadMaster {
            master: master.to_owned(),
            source,
        })
}

/// Makes a client with its own connections and its own budget. Needs a running tokio runtime.
pub fn client(config: &Config, options: &ClientOptions) -> Result<RestClient, ConfigError> {
    let mut config = config.clone();
    let user_agent = HeaderValue::from_str(&options.user_agent)
        .map_err(|_| ConfigError::BadUserAgent(options.user_agent.clone()))?;
    config.headers.push((header::USER_AGENT, user_agent));
    let server = config.cluster_url.clone();
    let transport = Transport::new(config, options.fence.clone())
        .map_err(|source| ConfigError::Connection { server, source })?;
    let service = service_fn(move |request| {
        let transport = transport.clone();
        async move { transport.send(request).await }
    });
    Ok(layered(service, options))
}

/// Puts the rate limit, the retries, the timeout and the fence of a client around a service, for example an
/// API server in the same process. Needs a running tokio runtime.
pub fn layered<S>(service: S, options: &ClientOptions) -> RestClient
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    let metrics = || Arc::clone(&options.metrics);
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
    RestClient::new(client).with_server_state(Arc::clone(&options.server_state))
}

/// Asks the server for its version, to tell a wrong address or credentials at the start.
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
