//! The reasons that a client can't be built.

use std::path::PathBuf;

use http::Uri;
use http::uri::InvalidUri;
use kube::config::{InClusterError, KubeconfigError};
use rustls::pki_types::pem;
use tower::BoxError;

use super::proxy::ProxyError;
use crate::error::Error;

/// The reason that a client can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The kubeconfig is missing or unreadable.
    #[error("cannot read the kubeconfig {}: {source}; check --kubeconfig", .path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The kubeconfig is invalid.
    #[error("cannot use the kubeconfig {}: {source}", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The problem.
        #[source]
        source: KubeconfigProblem,
    },
    /// The address is not a URL.
    #[error("--master {master:?} is not a URL: {source}")]
    BadMaster {
        /// The given address.
        master: String,
        /// The problem.
        #[source]
        source: ServerUrlError,
    },
    /// The environment names an invalid proxy.
    #[error("cannot use the proxy of the environment: {source}; check HTTPS_PROXY")]
    BadProxy {
        /// The problem, in one line without the password.
        #[source]
        source: ProxyError,
    },
    /// There is neither a kubeconfig nor a service account.
    #[error(
        "no --kubeconfig, no --master, and not in a cluster: {}; give one of the flags",
        one_line(.source)
    )]
    NotInCluster {
        /// The missing file or variable.
        #[source]
        source: Box<InClusterError>,
    },
    /// The user agent contains characters that a header can't.
    #[error("the user agent {0:?} cannot be sent in a header")]
    BadUserAgent(String),
    /// The credentials or certificates are invalid.
    #[error("cannot set up the connection to {server}: {}", one_line(.source.as_ref()))]
    Connection {
        /// The address of the API server.
        server: Uri,
        /// The problem.
        #[source]
        source: BoxError,
    },
    /// The server did not respond.
    #[error("cannot reach the API server at {server}: {source}")]
    Unreachable {
        /// The address of the API server.
        server: Uri,
        /// The failed request's error.
        #[source]
        source: Box<Error>,
    },
    /// The server rejected the credentials.
    #[error(
        "the API server at {server} rejects the credentials: {source}; \
         check the token or client certificate"
    )]
    Unauthorized {
        /// The address of the API server.
        server: Uri,
        /// The server's response.
        #[source]
        source: Box<Error>,
    },
}

/// The problem with a kubeconfig, in one line without credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigProblem {
    /// The file is no YAML, or not that of a kubeconfig. The parser's error is missing here: it
    /// quotes the file, and the mistake may be in or next to a token.
    #[error("it is not the YAML of a kubeconfig{}", shown(*.place))]
    NotYaml {
        /// Line and column of the mistake, from 1, if known.
        place: Option<(u64, u64)>,
    },
    /// The current context, its cluster or a file of the cluster can't be loaded.
    #[error("{}", one_line(.0))]
    Load(#[source] Box<KubeconfigError>),
    /// The address of the cluster is no URL.
    #[error("server {server:?}: {source}")]
    Server {
        /// The address.
        server: String,
        /// The problem.
        #[source]
        source: ServerUrlError,
    },
    /// The certificate authority is empty.
    #[error("the certificate authority has no certificate")]
    NoAuthority,
    /// The certificate authority is no PEM.
    #[error("cannot read the certificate authority: {0}")]
    Authority(#[source] pem::Error),
    /// The proxy of the cluster is invalid.
    #[error("proxy-url: {0}")]
    Proxy(#[source] ProxyError),
}

fn shown(place: Option<(u64, u64)>) -> String {
    place.map_or_else(String::new, |(line, column)| {
        format!(", see line {line}, column {column}")
    })
}

/// The problem with the address of an API server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerUrlError {
    /// The address is not a URL.
    #[error("{0}")]
    NotAUrl(#[from] InvalidUri),
    /// The URL has another scheme or no host.
    #[error("neither http:// nor https:// with a host")]
    NoHost,
}

/// Returns an error in one line; some parsers quote the text around a mistake.
pub(super) fn one_line(err: &dyn std::error::Error) -> String {
    err.to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
