//! Setup of the served port from the flags.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use http::Uri;
use rustls::crypto::CryptoProvider;
use statefulset_client::backoff::Jitter;
use statefulset_client::clock::Clock;
use statefulset_client::config::{self, ClientOptions, ConfigError, ProxyConfig, Source};
use statefulset_client::rest::RestClient;
use statefulset_client::rest::api_health::ApiHealthLog;
use statefulset_client::rest::metrics::ClientMetrics;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::authentication::{Authentication, HeaderNames, Lookup, RequestHeader, Tokens};
use super::authorization::{AllowedPaths, Authorization, CacheTtls};
use super::certificate::{self, Certificates, ForNames};
use super::client_ca::ClientCa;
use super::endpoints::Endpoints;
use super::files::{self, Refresh};
use super::handler::Handler;
use super::listen::{Address, listen};
use super::review::Reviewer;
use super::server::Server;
use super::tls::{self, TlsOptions};
use crate::flags::authentication::AuthenticationFlags;
use crate::flags::authorization::AuthorizationFlags;
use crate::flags::secure_serving::SecureServingFlags;

/// Rate and burst of reviews. Users wait as long as their reviews do.
const QPS: f64 = 200.0;
const BURST: u32 = 400;
/// Time limit for one review response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the port waits for the first lookup of the cluster's settings.
const FIRST_LOOKUP_MAX: Duration = Duration::from_secs(2);

/// Flags of the port.
#[derive(Clone, Copy)]
pub(crate) struct ServingFlags<'a> {
    pub(crate) authentication: &'a AuthenticationFlags,
    pub(crate) authorization: &'a AuthorizationFlags,
}

/// Provides request metrics for a server address.
pub(crate) type MetricsOf = dyn Fn(&Uri) -> Arc<dyn ClientMetrics> + Send + Sync;

/// Dependencies on the rest of the program.
pub(crate) struct ServingDeps {
    /// User agent of review requests.
    pub(crate) user_agent: String,
    /// Proxy settings of the environment.
    pub(crate) proxy: ProxyConfig,
    /// Request metrics by server address.
    pub(crate) client_metrics: Box<MetricsOf>,
    /// API server and credentials of the rest of the program, with the log of its failures.
    pub(crate) source: Source,
    pub(crate) api_health: Arc<ApiHealthLog>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) jitter: Arc<dyn Jitter>,
}

/// The opened port with its certificates, before it serves requests.
pub(crate) struct Opened {
    listener: TcpListener,
    tls: TlsOptions,
    provider: Arc<CryptoProvider>,
    certificates: Certificates,
    streams_max: u32,
}

/// Client for reviews, with the log of its failures.
struct ReviewClient {
    rest: RestClient,
    api_health: Arc<ApiHealthLog>,
}

/// The port, ready to serve.
pub(crate) struct Serving {
    listener: TcpListener,
    server: Arc<Server>,
    followed: Vec<Arc<dyn Refresh>>,
    lookup: Option<Lookup>,
}

/// Opens the port, so that a port conflict is reported before any other work; `None` if no port is
/// configured.
///
/// # Errors
///
/// The port is unavailable, or the certificates are invalid.
///
/// Upstream: `SecureServingOptions.ApplyTo`.
pub(crate) fn open(
    flags: &SecureServingFlags,
    clock: &dyn Clock,
) -> anyhow::Result<Option<Opened>> {
    let Some(port) = flags.port() else {
        return Ok(None);
    };
    let listener = listen(Address {
        ip: flags.bind_address,
        port,
        shared: flags.permit_port_sharing,
    })?;
    let tls = TlsOptions {
        min_version: flags.tls_min_version,
        cipher_suites: flags.tls_cipher_suites.clone(),
        groups: flags.tls_curve_preferences.clone(),
        http2: !flags.disable_http2_serving,
        client_certificates: false,
    };
    let provider = Arc::new(tls::provider(&tls));
    let given = flags
        .tls_cert_file
        .clone()
        .zip(flags.tls_private_key_file.clone());
    let files = match (given, &flags.cert_dir) {
        (Some(files), _) => Some(files),
        (None, Some(folder)) => Some(certificate::pair_in(folder, clock.now())?),
        (None, None) => None,
    };
    let certificates = match files {
        Some((chain, key)) => Certificates::from_files(certificate::pair(&chain, &key, &provider)?),
        None => Certificates::own(clock.now(), &provider)?,
    };
    let named = flags.tls_sni_cert_key.iter().map(|one| {
        let pair = certificate::pair(&one.certificate, &one.key, &provider)?;
        let names = one.names.clone();
        anyhow::Ok(ForNames { names, pair })
    });
    let named = named.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Some(Opened {
        listener,
        tls,
        provider,
        certificates: certificates.with_names(named),
        streams_max: flags.http2_max_streams_per_connection,
    }))
}

impl Opened {
    /// Prepares authentication and authorization. The cluster's settings are looked up while the
    /// port is served.
    ///
    /// # Errors
    ///
    /// A file can't be read or is invalid.
    ///
    /// Upstream: `DelegatingAuthenticationOptions.ApplyTo`,
    /// `DelegatingAuthorizationOptions.ApplyTo`.
    pub(crate) async fn prepare(
        self,
        flags: ServingFlags<'_>,
        deps: ServingDeps,
        endpoints: Endpoints,
    ) -> anyhow::Result<Serving> {
        let mut followed = self.certificates.refreshed();
        let client = async |kubeconfig: Option<&PathBuf>| reviewing_client(kubeconfig, &deps).await;
        let authn = flags.authentication;
        let given = authn.authentication_kubeconfig.as_ref();
        let asking = client(given).await.context("--authentication-kubeconfig")?;
        if asking.is_none() {
            tracing::warn!(
                "no --authentication-kubeconfig and not in a cluster: requests with a token \
                 are anonymous"
            );
        }
        let jitter = &deps.jitter;
        let reviewer = |client: ReviewClient| Reviewer::new(client.rest, Arc::clone(jitter));

        let mut client_ca = None;
        if let Some(path) = &authn.client_ca_file {
            let ca = Arc::new(ClientCa::file("client CA", path, &self.provider)?);
            followed.push(Arc::clone(&ca) as Arc<dyn Refresh>);
            client_ca = Some(ca);
        }
        let mut request_header = None;
        if let Some(path) = &authn.requestheader_client_ca_file {
            let ca = Arc::new(ClientCa::file("request header CA", path, &self.provider)?);
            followed.push(Arc::clone(&ca) as Arc<dyn Refresh>);
            request_header = Some(Arc::new(RequestHeader::new(ca, header_names(authn))));
        }
        let missing = client_ca.is_none() || request_header.is_none();
        let mut lookup = None;
        if let (Some(client), true) = (&asking, missing && !authn.authentication_skip_lookup) {
            let state = Arc::new(client.api_health.without_rights());
            let mut looking = Lookup::new(
                client.rest.clone().with_api_health(state),
                Arc::clone(&self.provider),
                client_ca.is_none(),
                request_header.is_none(),
            );
            // Wait for a responsive server, so that the first request already finds the settings.
            let _ = timeout(FIRST_LOOKUP_MAX, looking.read_or_log()).await;
            client_ca = client_ca.or_else(|| looking.client_ca());
            request_header = request_header.or_else(|| looking.request_header());
            lookup = Some(looking);
        }
        let ttl = authn.authentication_token_webhook_cache_ttl;
        let authentication = Authentication {
            request_header,
            client_ca,
            tokens: asking.map(|client| Tokens::new(reviewer(client), ttl)),
            clock: Arc::clone(&deps.clock),
        };

        let authz = flags.authorization;
        let paths = AllowedPaths::new(&authz.authorization_always_allow_paths)
            .map_err(|error| anyhow!("--authorization-always-allow-paths: {error}"))?;
        let given = authz.authorization_kubeconfig.as_ref();
        let asking = client(given).await.context("--authorization-kubeconfig")?;
        if asking.is_none() {
            tracing::warn!(
                "no --authorization-kubeconfig and not in a cluster: only members of \
                 system:masters may see more than the paths of --authorization-always-allow-paths"
            );
        }
        let ttls = CacheTtls {
            authorized: authz.authorization_webhook_cache_authorized_ttl,
            unauthorized: authz.authorization_webhook_cache_unauthorized_ttl,
        };
        let authorization = Authorization::new(paths, asking.map(reviewer), ttls);

        let tls = TlsOptions {
            client_certificates: authentication.wants_certificates(),
            ..self.tls
        };
        let certificates = Arc::new(self.certificates);
        let config = tls::server_config(&tls, self.provider, certificates)?;
        let handler = Handler::new(authentication, authorization, endpoints);
        Ok(Serving {
            listener: self.listener,
            server: Arc::new(Server::new(handler, config, self.streams_max)),
            followed,
            lookup,
        })
    }
}

impl Serving {
    /// Listening address.
    ///
    /// # Errors
    ///
    /// The system doesn't report it.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        self.listener.local_addr().context("the secure port")
    }

    /// Serves until `stop`, then finishes the requests in progress.
    ///
    /// # Panics
    ///
    /// Panics if one of its tasks panics.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut parts = JoinSet::new();
        parts.spawn(files::follow(self.followed, stop.clone()));
        if let Some(lookup) = self.lookup {
            parts.spawn(lookup.follow(stop.clone()));
        }
        parts.spawn(self.server.run(self.listener, stop));
        while let Some(ended) = parts.join_next().await {
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

fn header_names(flags: &AuthenticationFlags) -> HeaderNames {
    HeaderNames {
        allowed_names: flags.requestheader_allowed_names.clone(),
        user: flags.requestheader_username_headers.clone(),
        uid: flags.requestheader_uid_headers.clone(),
        groups: flags.requestheader_group_headers.clone(),
        extra_prefixes: flags.requestheader_extra_headers_prefix.clone(),
    }
}

/// Upstream: `DelegatingAuthenticationOptions.getClient`.
fn review_options(
    deps: &ServingDeps,
    cluster_url: &Uri,
    api_health: &Arc<ApiHealthLog>,
) -> ClientOptions {
    ClientOptions::default()
        .qps(QPS)
        .burst(BURST)
        .user_agent(deps.user_agent.clone())
        .metrics((deps.client_metrics)(cluster_url))
        .response_timeout(RESPONSE_TIMEOUT)
        .api_health(Arc::clone(api_health))
}

/// Client for reviews: with a kubeconfig, or with the pod's service account; `None` outside of a
/// cluster.
async fn reviewing_client(
    kubeconfig: Option<&PathBuf>,
    deps: &ServingDeps,
) -> anyhow::Result<Option<ReviewClient>> {
    let given = kubeconfig.cloned();
    // Failures of other credentials are logged separately.
    let api_health = if given == deps.source.kubeconfig {
        Arc::clone(&deps.api_health)
    } else {
        Arc::default()
    };
    let source = Source::default()
        .kubeconfig(given)
        .proxy(deps.proxy.clone());
    let config = match config::load(&source).await {
        Ok(config) => config,
        Err(ConfigError::NotInCluster { .. }) => return Ok(None),
        // The error's own text names the flag of the controller's kubeconfig.
        Err(ConfigError::ReadFile { path, source }) => {
            let path = path.display();
            return Err(anyhow!(
                "cannot read the kubeconfig {path}: {source}; check the path"
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let options = review_options(deps, &config.cluster_url, &api_health);
    let rest = config::client(&config, &options)?;
    Ok(Some(ReviewClient { rest, api_health }))
}

#[cfg(test)]
mod tests {
    use statefulset_client::backoff::NoJitter;
    use statefulset_client::clock::FakeClock;
    use statefulset_client::rest::metrics::NoopClientMetrics;

    use super::*;
    use crate::serving::fixture::now;

    #[test]
    fn review_clients_have_separate_limits() {
        let metrics: Arc<dyn ClientMetrics> = Arc::new(NoopClientMetrics);
        let (given, cluster_url) = (Arc::clone(&metrics), Uri::from_static("https://it"));
        let url = cluster_url.clone();
        let deps = ServingDeps {
            user_agent: "it/1".to_owned(),
            proxy: ProxyConfig::default(),
            client_metrics: Box::new(move |asked| {
                assert_eq!(*asked, url);
                Arc::clone(&given)
            }),
            source: Source::default(),
            api_health: Arc::default(),
            clock: Arc::new(FakeClock::new(now())),
            jitter: Arc::new(NoJitter),
        };
        let api_health = Arc::default();
        let options = review_options(&deps, &cluster_url, &api_health);
        assert_eq!((options.qps, options.burst), (200.0, 400));
        assert_eq!(options.user_agent, "it/1");
        assert_eq!(options.response_timeout, Duration::from_secs(10));
        assert!(Arc::ptr_eq(&options.metrics, &metrics));
        assert!(Arc::ptr_eq(&options.api_health, &api_health));
        assert!(options.fence.is_none());
    }
}
