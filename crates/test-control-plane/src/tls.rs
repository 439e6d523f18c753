//! The loopback port: TLS with a certificate authority of its own, HTTP/1.1 and HTTP/2.

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
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::auth::{Identity, Peer};
use crate::server::ApiServer;

/// How many HTTP/2 streams a connection may have open: watches stay open, so there are many.
const HTTP2_STREAMS_MAX: u32 = 4000;

/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long connections may take to end when the server stops.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// The port couldn't be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address isn't a loopback address.
    #[error("listening on {0}: only loopback addresses are allowed")]
    NotLoopback(SocketAddr),
    /// The address is taken or can't be used.
    #[error("listening on {address}: {reason}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        reason: std::io::Error,
    },
    /// Making the certificates failed.
    #[error("making certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// The TLS library refused the certificates.
    #[error("setting up TLS: {0}")]
    Tls(String),
}

/// The certificates of one control plane.
#[derive(Clone, Debug)]
pub struct TlsMaterial {
    /// The authority's certificate.
    pub ca_pem: String,
    /// The administrator's certificate.
    pub client_pem: String,
    /// The administrator's key.
    pub client_key_pem: String,
    server_pem: String,
    server_key_pem: String,
}

impl TlsMaterial {
    /// Makes an authority, and certificates for the server and the administrator.
    ///
    /// # Errors
    ///
    /// The keys can't be made.
    pub fn generate() -> Result<Self, rcgen::Error> {
        let mut ca = CertificateParams::new(Vec::<String>::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        ca.distinguished_name
            .push(DnType::CommonName, "test-control-plane-ca");
        let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

        let names = [
            "localhost",
            "kubernetes",
            "kubernetes.default.svc",
            "127.0.0.1",
            "::1",
        ];
        let mut server = CertificateParams::new(names.map(str::to_owned))?;
        server
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_key = KeyPair::generate()?;
        let server = server.signed_by(&server_key, &issuer)?;

        let mut client = CertificateParams::new(Vec::<String>::new())?;
        client
            .distinguished_name
            .push(DnType::CommonName, "kubernetes-admin");
        client
            .distinguished_name
            .push(DnType::OrganizationName, "system:masters");
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client_key = KeyPair::generate()?;
        let client = client.signed_by(&client_key, &issuer)?;

        Ok(Self {
            ca_pem: issuer.pem(),
            client_pem: client.pem(),
            client_key_pem: client_key.serialize_pem(),
            server_pem: server.pem(),
            server_key_pem: server_key.serialize_pem(),
        })
    }

    fn server_config(&self) -> Result<rustls::ServerConfig, ListenError> {
        let certificate = |pem: &str| {
            let parsed = CertificateDer::from_pem_slice(pem.as_bytes());
            parsed.map_err(|err| ListenError::Tls(err.to_string()))
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        let failed = |err: rustls::Error| ListenError::Tls(err.to_string());
        roots.add(certificate(&self.ca_pem)?).map_err(failed)?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .map_err(|err| ListenError::Tls(err.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(self.server_key_pem.as_bytes())
            .map_err(|err| ListenError::Tls(err.to_string()))?;
        let chain = vec![certificate(&self.server_pem)?];
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(failed)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Opens the port and serves on it until `stopping`; the address that was opened.
pub(crate) async fn listen(
    server: ApiServer,
    address: SocketAddr,
    material: &TlsMaterial,
    tasks: &mut JoinSet<()>,
    stopping: CancellationToken,
) -> Result<SocketAddr, ListenError> {
    if !address.ip().is_loopback() {
        return Err(ListenError::NotLoopback(address));
    }
    let acceptor = TlsAcceptor::from(Arc::new(material.server_config()?));
    let failed = |source| ListenError::Bind {
        address,
        reason: source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let opened = listener.local_addr().map_err(failed)?;
    tasks.spawn(accept(listener, acceptor, server, stopping));
    Ok(opened)
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    server: ApiServer,
    stopping: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stopping.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // An outage closes the connection before a byte is read.
                    if let Some(broken) = server.faults().outage().connect() {
                        let acceptor = acceptor.clone();
                        let stopping = stopping.clone();
                        let served = connection(stream, acceptor, server.clone(), stopping);
                        connections.spawn(until_broken(broken, served));
                    }
                }
                // Out of file descriptors, most likely: let some connections end first.
                Err(err) => {
                    tracing::warn!(%err, "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Serves a connection until it or the server ends.
async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    server: ApiServer,
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
        async move { server.serve(request).await }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(HTTP2_STREAMS_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        () = stopping.cancelled() => {
            // Watches end by themselves: let their clients see it.
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(FAREWELL_TIMEOUT, connection).await
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

/// Whoever has a certificate of our authority is the administrator: no other one is handed out.
fn peer_of(stream: &TlsStream<TcpStream>) -> Peer {
    let (_, session) = stream.get_ref();
    let presented = session
        .peer_certificates()
        .is_some_and(|chain| !chain.is_empty());
    Peer {
        certificate: presented.then(Identity::admin),
    }
}
