//! The port at the byte level: both HTTP versions, timing of responses, many streams.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_test_control_plane::TestControlPlane;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::Plane;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Number of watches on one connection.
const STREAMS: usize = 1000;

async fn started() -> Plane {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Plane::new(TestControlPlane::builder().listen(address).start().await)
}

/// Connects as the administrator with one of the protocols.
async fn connect(plane: &Plane, protocol: &str) -> TlsStream<TcpStream> {
    let config = plane.0.kubeconfig().unwrap();
    let pem = |pointer: &str| {
        let text = config.pointer(pointer).and_then(Value::as_str).unwrap();
        STANDARD.decode(text).unwrap()
    };
    let authority = pem("/clusters/0/cluster/certificate-authority-data");
    let certificate = pem("/users/0/user/client-certificate-data");
    let key = pem("/users/0/user/client-key-data");
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(&authority).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(&certificate).unwrap()],
            PrivateKeyDer::from_pem_slice(&key).unwrap(),
        )
        .unwrap();
    client.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let url = plane.0.url().unwrap();
    let address = url.strip_prefix("https://").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(client));
    let stream = connector.connect(name, stream).await.unwrap();
    let agreed = stream.get_ref().1.alpn_protocol();
    assert_eq!(agreed, Some(protocol.as_bytes()));
    stream
}

/// An HTTP/1.1 connection, read by lines.
struct Lines(BufReader<TlsStream<TcpStream>>);

impl Lines {
    async fn open(plane: &Plane) -> Self {
        Self(BufReader::new(connect(plane, "http/1.1").await))
    }

    async fn send(&mut self, request: &str) {
        self.0.write_all(request.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    /// Returns the lines up to the empty one, in lower case.
    async fn head(&mut self) -> Vec<String> {
        let mut head = Vec::new();
        loop {
            match self.line().await {
                line if line.is_empty() => return head,
                line => head.push(line.to_ascii_lowercase()),
            }
        }
    }

    /// Returns one chunk of a chunked body.
    async fn chunk(&mut self) -> String {
        let size = usize::from_str_radix(&self.line().await, 16).unwrap();
        let mut bytes = vec![0; size];
        self.0.read_exact(&mut bytes).await.unwrap();
        assert_eq!(self.line().await, "");
        String::from_utf8(bytes).unwrap()
    }

    async fn body(&mut self, size: usize) -> String {
        let mut bytes = vec![0; size];
        self.0.read_exact(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

fn size_of_body(head: &[String]) -> usize {
    let mut lengths = head
        .iter()
        .filter_map(|line| line.strip_prefix("content-length: "));
    lengths.next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn http1_watch_sends_its_head_immediately() {
    let plane = started().await;
    let mut lines = Lines::open(&plane).await;
    lines
        .send(&format!(
            "GET {MAPS}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: h\r\n\r\n"
        ))
        .await;
    // Nothing has happened yet, and nothing will before the head was read.
    let head = lines.head().await;
    assert_eq!(head[0], "http/1.1 200 ok");
    for line in [
        "transfer-encoding: chunked",
        "content-type: application/json",
    ] {
        assert!(head.iter().any(|found| found == line), "{head:?}");
    }
    for name in ["a", "b"] {
        plane
            .create(MAPS, &json!({"metadata": {"name": name}}))
            .await;
        let chunk = lines.chunk().await;
        assert_eq!(chunk.matches('\n').count(), 1);
        assert!(chunk.ends_with('\n'));
        let event: Value = serde_json::from_str(&chunk).unwrap();
        assert_eq!(event["object"]["metadata"]["name"], name);
    }
    plane.0.server().stop();
    assert_eq!(lines.line().await, "0");
    plane.stop().await;
}

#[tokio::test]
async fn http1_connection_is_reused() {
    let plane = started().await;
    let mut lines = Lines::open(&plane).await;
    for method in ["GET", "HEAD", "GET"] {
        lines
            .send(&format!("{method} /healthz HTTP/1.1\r\nHost: h\r\n\r\n"))
            .await;
        let head = lines.head().await;
        assert_eq!(head[0], "http/1.1 200 ok");
        assert_eq!(size_of_body(&head), 2);
        if method == "GET" {
            assert_eq!(lines.body(2).await, "ok");
        }
    }
    plane.stop().await;
}

#[tokio::test]
async fn oversized_body_is_answered_after_it_was_sent() {
    let plane = started().await;
    let mut lines = Lines::open(&plane).await;
    let size = 8 * 1024 * 1024;
    let body = "x".repeat(size);
    lines
        .send(&format!(
            "POST {MAPS} HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n{body}"
        ))
        .await;
    let head = lines.head().await;
    assert_eq!(head[0], "http/1.1 413 payload too large");
    let status: Value = serde_json::from_str(&lines.body(size_of_body(&head)).await).unwrap();
    assert_eq!(status["reason"], "RequestEntityTooLarge");
    plane.stop().await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "the connection ends with the test's runtime"
)]
async fn open_http2(plane: &Plane) -> SendRequest<Empty<Bytes>> {
    let stream = TokioIo::new(connect(plane, "h2").await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

#[tokio::test]
async fn http2_connection_holds_a_thousand_watches() {
    let plane = started().await;
    let mut sender = open_http2(&plane).await;
    let uri = format!("https://localhost{MAPS}?watch=1&resourceVersion=1");
    let mut watches = Vec::new();
    for _ in 0..STREAMS {
        sender.ready().await.unwrap();
        let request = Request::builder().uri(&uri).body(Empty::new()).unwrap();
        watches.push(sender.send_request(request).await.unwrap());
    }
    plane
        .create(MAPS, &json!({"metadata": {"name": "m"}}))
        .await;
    for watch in watches {
        assert_eq!(watch.status(), 200);
        let mut body = watch.into_body();
        let frame = body.frame().await.unwrap().unwrap();
        let text = frame.into_data().unwrap();
        let event: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(event["object"]["metadata"]["name"], "m");
    }
    plane.stop().await;
}

#[tokio::test]
async fn head_has_no_body_over_http2_either() {
    let plane = started().await;
    let mut sender = open_http2(&plane).await;
    let uri = "https://localhost/healthz";
    let request = Request::builder().method(Method::HEAD).uri(uri);
    let reply = sender
        .send_request(request.body(Empty::new()).unwrap())
        .await
        .unwrap();
    assert_eq!(reply.headers()["content-length"], "2");
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    assert!(body.is_empty());
    plane.stop().await;
}
