//! A kubeconfig's current context.

use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::Scheme;
use kube::config::{
    AuthInfo, Cluster, Config, Context, ExecAuthCluster, Kubeconfig, KubeconfigError,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::error::{ConfigError, KubeconfigProblem, ServerUrlError};
use super::proxy;

/// Reads the kubeconfig. A valid `master` overrides the file's address.
pub(super) fn read(path: &Path, master: Option<&str>) -> Result<Config, ConfigError> {
    let kubeconfig = Kubeconfig::read_from(path).map_err(|err| match err {
        KubeconfigError::ReadConfig(source, path) => ConfigError::ReadFile { path, source },
        other => bad_file(path, problem(other)),
    })?;
    let current = Current::of(kubeconfig).map_err(|err| bad_file(path, problem(err)))?;
    current
        .into_config(master)
        .map_err(|source| bad_file(path, source))
}

fn bad_file(path: &Path, source: KubeconfigProblem) -> ConfigError {
    ConfigError::BadFile {
        path: path.to_owned(),
        source,
    }
}

fn problem(err: KubeconfigError) -> KubeconfigProblem {
    match err {
        KubeconfigError::Parse(err) => KubeconfigProblem::NotYaml {
            place: err.location().map(|at| (at.line(), at.column())),
        },
        other => KubeconfigProblem::Load(Box::new(other)),
    }
}

/// The current context with its cluster and user.
struct Current {
    context: Context,
    cluster: Cluster,
    user: AuthInfo,
}

impl Current {
    /// A missing user means no credentials, as in client-go.
    fn of(kubeconfig: Kubeconfig) -> Result<Self, KubeconfigError> {
        let name = kubeconfig
            .current_context
            .ok_or(KubeconfigError::CurrentContextNotSet)?;
        let mut contexts = kubeconfig.contexts.into_iter();
        let context = contexts.find(|named| named.name == name);
        let context = context
            .and_then(|named| named.context)
            .ok_or(KubeconfigError::LoadContext(name))?;
        let mut clusters = kubeconfig.clusters.into_iter();
        let cluster = clusters.find(|named| named.name == context.cluster);
        let cluster = cluster
            .and_then(|named| named.cluster)
            .ok_or_else(|| KubeconfigError::LoadClusterOfContext(context.cluster.clone()))?;
        let mut users = kubeconfig.auth_infos.into_iter();
        let user = users.find(|named| Some(&named.name) == context.user.as_ref());
        let user = user.and_then(|named| named.auth_info).unwrap_or_default();
        Ok(Self {
            context,
            cluster,
            user,
        })
    }

    /// Upstream: `DirectClientConfig.ClientConfig`.
    fn into_config(self, master: Option<&str>) -> Result<Config, KubeconfigProblem> {
        let Self {
            context,
            mut cluster,
            mut user,
        } = self;
        if let Some(master) = master {
            // The certificate has the name of the file's server.
            cluster.server = Some(master.to_owned());
            cluster.tls_server_name = None;
        }
        let server = server_of(&cluster, &user)?;
        // The cluster data for the plugin.
        cluster.server = Some(server.to_string());
        // The plugin's cluster data also contains the certificate authority.
        let exec_cluster = ExecAuthCluster::try_from(&cluster).map_err(problem)?;
        let authority = exec_cluster.certificate_authority_data.as_deref();
        let root_cert = authority.map(certificates).transpose()?;
        if let Some(plugin) = user.exec.as_mut().filter(|it| it.provide_cluster_info) {
            plugin.cluster = Some(exec_cluster);
        }
        let mut config = Config::new(server);
        if let Some(namespace) = context.namespace {
            config.default_namespace = namespace;
        }
        config.root_cert = root_cert;
        config.root_cert_file = authority_file(&cluster);
        config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
        config.disable_compression = cluster.disable_compression.unwrap_or(false);
        config.tls_server_name = cluster.tls_server_name;
        let proxy_url = cluster.proxy_url.filter(|url| !url.is_empty());
        config.proxy_url = proxy_url
            .map(|url| proxy::parse(&url))
            .transpose()
            .map_err(KubeconfigProblem::Proxy)?;
        config.auth_info = user;
        Ok(config)
    }
}

/// Returns the file's server address. Without a scheme it is https if the cluster or the user has
/// TLS settings.
///
/// Upstream: `rest.DefaultServerUrlFor`.
fn server_of(cluster: &Cluster, user: &AuthInfo) -> Result<Uri, KubeconfigProblem> {
    let server = cluster.server.as_deref();
    let server = server.ok_or_else(|| problem(KubeconfigError::MissingClusterUrl))?;
    let is_given = |field: &Option<String>| field.as_ref().is_some_and(|text| !text.is_empty());
    let is_secure = cluster.insecure_skip_tls_verify == Some(true)
        || is_given(&cluster.certificate_authority)
        || is_given(&cluster.certificate_authority_data)
        || is_given(&user.client_certificate)
        || is_given(&user.client_certificate_data);
    let scheme = if is_secure {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    };
    server_url(server, &scheme).map_err(|source| KubeconfigProblem::Server {
        server: server.to_owned(),
        source,
    })
}

/// Returns the certificates of an authority.
fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, KubeconfigProblem> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem)
        .map(|certificate| certificate.map(|certificate| certificate.to_vec()))
        .collect();
    match found {
        Ok(found) if found.is_empty() => Err(KubeconfigProblem::NoAuthority),
        Ok(found) => Ok(found),
        Err(err) => Err(KubeconfigProblem::Authority(err)),
    }
}

/// Returns the certificate authority's file, which is reloaded periodically. Returns none if the
/// kubeconfig contains the authority's data.
fn authority_file(cluster: &Cluster) -> Option<PathBuf> {
    let is_inline = cluster.certificate_authority_data.is_some();
    let file = cluster.certificate_authority.as_ref();
    file.filter(|file| !is_inline && !file.is_empty())
        .map(PathBuf::from)
}

/// Parses a server's URL, with a default scheme.
pub(super) fn server_url(text: &str, scheme_default: &Scheme) -> Result<Uri, ServerUrlError> {
    let url: Result<Uri, _> = if text.contains("://") {
        text.parse()
    } else {
        format!("{scheme_default}://{text}").parse()
    };
    let url = url?;
    let is_known = url.scheme() == Some(&Scheme::HTTPS) || url.scheme() == Some(&Scheme::HTTP);
    if is_known && url.host().is_some_and(|host| !host.is_empty()) {
        Ok(url)
    } else {
        Err(ServerUrlError::NoHost)
    }
}
