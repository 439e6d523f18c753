//! The loopback port: TLS with the control plane's certificate authority, HTTP/1.1 and HTTP/2.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::auth::{self, Peer};
use crate::certificates::{CertificateError, PemError, TlsMaterial, certificates};
use crate::server::ApiServer;

/// Limit of HTTP/2 streams per connection; each open watch needs one.
const HTTP2_STREAMS_MAX: u32 = 4000;

/// Timeout of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Grace period for connections when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The port could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is not a loopback address.
    #[error("listening on {0}: only loopback addresses are allowed")]
    NotLoopback(SocketAddr),
    /// The address is in use or unusable.
    #[error("listening on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The certificates could not be generated.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The certificates or the key could not be read.
    #[error("setting up TLS: {0}")]
    Pem(#[from] PemError),
    /// The TLS library rejected the certificate authorities.
    #[error("setting up TLS: {0}")]
    Authorities(#[from] VerifierBuilderError),
    /// The TLS library rejected the certificates.
    #[error("setting up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

fn server_config(material: &TlsMaterial) -> Result<rustls::ServerConfig, ListenError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for authority in certificates(&material.client_ca_pem())? {
        roots.add(authority)?;
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let key =
        PrivateKeyDer::from_pem_slice(material.server_key_pem.as_bytes()).map_err(PemError::Pem)?;
    let chain = certificates(&material.server_pem)?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The server behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The API server.
    Api,
    /// The kubelets of all nodes.
    Kubelets,
}

/// Opens the port and serves on it until `stopping`. Returns the opened address.
pub async fn listen(
    (server, backend): (ApiServer, Backend),
    address: SocketAddr,
    material: &TlsMaterial,
    tasks: &mut JoinSet<()>,
    stopping: CancellationToken,
) -> Result<SocketAddr, ListenError> {
    if !address.ip().is_loopback() {
        return Err(ListenError::NotLoopback(address));
    }
    let acceptor = TlsAcceptor::from(Arc::new(server_config(material)?));
    let failed = |source| ListenError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let opened = listener.local_addr().map_err(failed)?;
    tasks.spawn(accept(
        listener,
        opened,
        acceptor,
        (server, backend),
        stopping,
    ));
    Ok(opened)
}

async fn accept(
    mut listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    (server, backend): (ApiServer, Backend),
    stopping: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stopping.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            // The system refuses connections to a closed port.
            () = server.faults().outage().begun() => {
                drop(listener);
                let opened = tokio::select! {
                    () = stopping.cancelled() => None,
                    opened = open_again(&server, address) => Some(opened),
                };
                match opened {
                    Some(opened) => listener = opened,
                    None => break,
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // A connection accepted just before an outage is closed unread.
                    if let Some(broken) = server.faults().outage().connect() {
                        let acceptor = acceptor.clone();
                        let stopping = stopping.clone();
                        let server = (server.clone(), backend);
                        let served = connection(stream, acceptor, server, stopping);
                        connections.spawn(until_broken(broken, served));
                    }
                }
                // Probably out of file descriptors: wait for some connections to end.
                Err(err) => {
                    tracing::warn!(%err, "failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Reopens the port after an outage.
async fn open_again(server: &ApiServer, address: SocketAddr) -> TcpListener {
    loop {
        server.faults().outage().over().await;
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(err) => {
                tracing::warn!(%err, %address, "failed to reopen the port after an outage");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves a connection until it or the server ends.
async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    (server, backend): (ApiServer, Backend),
    stopping: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
    let stream = tokio::select! {
        biased;
        () = stopping.cancelled() => return,
        accepted = handshake => match accepted {
            Ok(Ok(stream)) => stream,
            Ok(Err(err)) => {
                tracing::debug!(%err, "the TLS handshake failed");
                return;
            }
            Err(_) => return,
        }
    };
    let peer = peer_of(&stream);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let server = server.clone();
        async move {
            match backend {
                Backend::Api => server.serve(request).await,
                Backend::Kubelets => Ok(server.serve_nodes(request).await),
            }
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(HTTP2_STREAMS_MAX);
    let mut connection =
        pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        () = stopping.cancelled() => {
            // Watches end on their own: deliver their end to the clients.
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(DRAIN_TIMEOUT, connection).await
        }
        ended = &mut connection => Ok(ended),
    };
    if let Ok(Err(err)) = ended {
        tracing::debug!(%err, "a connection ended");
    }
}

/// Serves a connection until an outage breaks it.
async fn until_broken(broken: CancellationToken, served: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = broken.cancelled() => {}
        () = served => {}
    }
}

/// Returns the user of the client's verified certificate.
fn peer_of(stream: &TlsStream<TcpStream>) -> Peer {
    let (_, session) = stream.get_ref();
    let chain = session.peer_certificates();
    let certificate = chain.and_then(<[_]>::first);
    Peer {
        certificate: certificate.and_then(|der| auth::certificate_user(der)),
    }
}
