//! Tests of connections, over pipes and over the loopback interface.

mod swap;

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::*;
use crate::serving::certificate::Certificates;
use crate::serving::fixture::{Ca, handler, now, provider, request, spawn};
use crate::serving::health::HealthCheck;
use crate::serving::listen::{Address, listen};
use crate::serving::tls::{TlsOptions, server_config};

const PIPE_BYTES: usize = 64 * 1024;

/// A server, and the authority of its clients.
struct Started {
    server: Arc<Server>,
    ca: Ca,
    /// Root of the server's certificate.
    roots: RootCertStore,
    stop: CancellationToken,
}

fn server(handler: Handler) -> Started {
    let ca = Ca::new();
    let mut handler = handler;
    handler.authentication.client_ca = Some(ca.client_ca());
    server_of(handler, ca, Certificates::own(now(), &provider()).unwrap())
}

fn server_of(handler: Handler, ca: Ca, certificates: Certificates) -> Started {
    let options = TlsOptions {
        min_version: ProtocolVersion::TLSv1_2,
        cipher_suites: Vec::new(),
        groups: Vec::new(),
        http2: true,
        client_certificates: true,
    };
    let certificates = Arc::new(certificates);
    let mut roots = RootCertStore::empty();
    let shown = certificates.shown_by_default();
    roots.add(shown).unwrap();
    let tls = server_config(&options, provider(), certificates).unwrap();
    Started {
        server: Arc::new(Server::new(handler, tls, 0)),
        ca,
        roots,
        stop: CancellationToken::new(),
    }
}

type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Started {
    /// Opens a pipe to the server; the client has sent nothing yet.
    fn connect(&self) -> (DuplexStream, JoinHandle<()>) {
        let (ours, theirs) = duplex(PIPE_BYTES);
        let serving = Arc::clone(&self.server).serve(theirs, self.stop.clone());
        (ours, spawn(serving))
    }

    fn client(&self, protocol: &str, identity: Option<Identity>) -> TlsConnector {
        // The certificate is valid at the tests' time, not at the real one.
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(self.roots.clone()), provider());
        let verifier = Arc::new(AtNow(verifier.build().unwrap()));
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match identity {
            Some((certificate, key)) => builder
                .with_client_auth_cert(vec![certificate], key)
                .unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}

/// Verifies a server's certificate at the tests' current time.
#[derive(Debug)]
struct AtNow(Arc<WebPkiServerVerifier>);

impl rustls::client::danger::ServerCertVerifier for AtNow {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        _now: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        let since = now().duration_since(jiff::Timestamp::UNIX_EPOCH);
        let now = rustls::pki_types::UnixTime::since_unix_epoch(since.try_into().unwrap());
        let verifier = &self.0;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

fn host() -> ServerName<'static> {
    ServerName::try_from("127.0.0.1").unwrap()
}

/// Sends an HTTP/1.1 request on a stream; returns the code and the body.
async fn ask<S>(connector: &TlsConnector, stream: S, path: &str) -> (u16, String)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stream = connector.connect(host(), stream).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}

#[tokio::test]
async fn http_1_and_2_are_served() {
    let started = server(handler(None));
    let (stream, serving) = started.connect();
    let connector = started.client("http/1.1", None);
    assert_eq!(
        ask(&connector, stream, "/healthz").await,
        (200, "ok".to_owned())
    );
    serving.await.unwrap();

    let (stream, serving) = started.connect();
    let connector = started.client("h2", None);
    let stream = connector.connect(host(), stream).await.unwrap();
    let (mut sender, connection) =
        conn::http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let driving = spawn(connection);
    for path in ["/healthz", "/readyz"] {
        let uri = format!("https://127.0.0.1{path}");
        let response = sender.send_request(request("GET", &uri, "")).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
    }
    drop(sender);
    driving.await.unwrap().unwrap();
    serving.await.unwrap();
}

#[tokio::test]
async fn handshake_certificate_identifies_the_client() {
    let started = server(handler(None));
    let identity = |ca: &Ca| {
        let wanted = crate::serving::fixture::CertificateAttributes {
            name: "jane",
            group: "system:masters",
            ..Default::default()
        };
        ca.sign(&wanted)
    };
    for (identity, expected) in [
        (None, 403),
        (Some(identity(&started.ca)), 200),
        // The handshake succeeds, so that the client gets an error message.
        (Some(identity(&Ca::new())), 401),
    ] {
        let (stream, serving) = started.connect();
        let connector = started.client("http/1.1", identity);
        assert_eq!(ask(&connector, stream, "/metrics").await.0, expected);
        serving.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn silent_client_is_disconnected() {
    let started = server(handler(None));
    let begin = Instant::now();
    let (mut stream, serving) = started.connect();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(begin.elapsed(), HANDSHAKE_MAX);
    serving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn slow_or_idle_client_is_disconnected() {
    for (protocol, said) in [
        ("http/1.1", &b""[..]),
        ("http/1.1", b"GET /healthz HTTP/1.1\r\nhost:"),
        ("h2", b""),
        ("h2", b"PRI * HTTP/2.0\r\n"),
    ] {
        let started = server(handler(None));
        let (stream, serving) = started.connect();
        let connector = started.client(protocol, None);
        let mut stream = connector.connect(host(), stream).await.unwrap();
        stream.write_all(said).await.unwrap();
        let begin = Instant::now();
        serving.await.unwrap();
        let waited = begin.elapsed();
        let most = IDLE_MAX + DRAIN_TIMEOUT;
        assert!(
            (IDLE_MAX..=most).contains(&waited),
            "{protocol}: {waited:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_closes_the_connection() {
    let started = server(handler(None));
    let (mut stream, serving) = started.connect();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let begin = Instant::now();
    serving.await.unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO);

    for garbage in [
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET  \r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(1 << 20)),
        format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 17)),
    ] {
        let (stream, serving) = started.connect();
        let connector = started.client("http/1.1", None);
        let mut stream = connector.connect(host(), stream).await.unwrap();
        // The server may hang up before it has read everything.
        let _ = stream.write_all(garbage.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{answer}"
        );
        serving.await.unwrap();
    }
    // The server keeps serving.
    let (stream, serving) = started.connect();
    let connector = started.client("http/1.1", None);
    assert_eq!(ask(&connector, stream, "/healthz").await.0, 200);
    serving.await.unwrap();
}

/// A check that stops the server while it runs.
struct Stops(CancellationToken);

impl HealthCheck for Stops {
    fn name(&self) -> &'static str {
        "stops"
    }

    fn check(&self) -> Result<(), String> {
        self.0.cancel();
        Ok(())
    }
}

#[tokio::test]
async fn stopping_server_finishes_requests_in_progress() {
    let handler = handler(None);
    let health = Arc::clone(&handler.endpoints.health);
    let started = server(handler);
    health.add(Arc::new(Stops(started.stop.clone())));
    let (idle, idle_serving) = started.connect();
    let (stream, serving) = started.connect();
    let connector = started.client("http/1.1", None);
    assert_eq!(
        ask(&connector, stream, "/healthz").await,
        (200, "ok".to_owned())
    );
    serving.await.unwrap();
    idle_serving.await.unwrap();
    drop(idle);
}

#[tokio::test]
async fn port_is_served_until_the_server_stops() {
    let Started {
        server,
        ca,
        roots,
        stop,
    } = server(handler(None));
    let started = Started {
        server: Arc::clone(&server),
        ca,
        roots,
        stop: stop.clone(),
    };
    let listener = listen(Address {
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        shared: false,
    });
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    let running = spawn(server.run(listener, stop.clone()));
    let connector = started.client("http/1.1", None);
    for _ in 0..3 {
        let stream = TcpStream::connect(address).await.unwrap();
        assert_eq!(ask(&connector, stream, "/healthz").await.0, 200);
    }
    stop.cancel();
    running.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}
