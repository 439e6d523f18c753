//! Admission webhooks behind a port with TLS, called as by a real API server.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use kube_test_control_plane::TestControlPlane;
use rcgen::generate_simple_self_signed;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::service_fn;

use super::{MAPS, answer, configure, map, rejected, webhook};
use crate::support::Plane;

/// A server of webhooks as an operator has it.
struct HookServer {
    address: SocketAddr,
    /// Its certificate, as configurations hold it.
    bundle: String,
    _connections: JoinSet<()>,
}

/// Starts a server with a certificate for these names. It denies every request with the path and the
/// host that the request names.
async fn start(names: &[&str]) -> HookServer {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let pair = generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            open.spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = TowerToHyperService::new(service_fn(deny));
                let builder = Builder::new(TokioExecutor::new());
                let served = builder.serve_connection(TokioIo::new(stream), service);
                let _ = served.await;
            });
        }
    });
    HookServer {
        address,
        bundle: STANDARD.encode(pair.cert.pem()),
        _connections: connections,
    }
}

async fn deny(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let host = head.headers.get("host").and_then(|it| it.to_str().ok());
    let said = format!("{} at {}", head.uri, host.unwrap_or_default());
    let response = json!({"allowed": false, "status": {"message": said}});
    Ok(answer(&review, response))
}

/// Returns the message about a config map, with webhooks that have this configuration.
async fn message(plane: &Plane, client_config: Value, code: u16) -> String {
    let more = json!({"clientConfig": client_config, "timeoutSeconds": 3});
    configure(plane, "validating", "c", &[webhook("hooks", &more)]).await;
    let message = rejected(plane, Method::POST, MAPS, &map("x", &json!({})), code).await;
    let path = format!("{}/validatingwebhookconfigurations/c", super::ADMISSION);
    assert_eq!(plane.call(Method::DELETE, &path, &Value::Null).await.0, 200);
    message
}

#[tokio::test]
async fn service_is_called_at_its_address_under_its_name() {
    let server = start(&["hooks.default.svc"]).await;
    let address = server.address;
    let plane = TestControlPlane::builder()
        .webhook_address("default", "hooks", address)
        .start()
        .await;
    let plane = Plane::new(plane);
    let service = json!({"namespace": "default", "name": "hooks", "path": "/check", "port": 8443});
    let config = json!({"service": service, "caBundle": server.bundle});
    assert_eq!(
        message(&plane, config, 400).await,
        "admission webhook \"hooks.example.com\" denied the request: /check?timeout=3s at \
         hooks.default.svc:8443"
    );
    plane.stop().await;
}

#[tokio::test]
async fn url_is_called_if_its_certificate_is_trusted() {
    let server = start(&["localhost"]).await;
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let port = server.address.port();
    let url = format!("https://localhost:{port}/check");
    let config = json!({"url": url, "caBundle": server.bundle});
    assert_eq!(
        message(&plane, config, 400).await,
        format!(
            "admission webhook \"hooks.example.com\" denied the request: /check?timeout=3s at \
             localhost:{port}"
        )
    );
    let other = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let config = json!({"url": url, "caBundle": STANDARD.encode(other.cert.pem())});
    assert_eq!(
        message(&plane, config, 500).await,
        format!(
            "Internal error occurred: failed calling webhook \"hooks.example.com\": failed to \
             call webhook: Post \"{url}?timeout=3s\": tls: failed to verify certificate: x509: \
             certificate signed by unknown authority"
        )
    );
    let config = json!({
        "url": format!("https://127.0.0.1:{port}/check"), "caBundle": server.bundle,
    });
    let found = message(&plane, config, 500).await;
    let why = "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP \
               SANs";
    assert!(found.ends_with(why), "{found}");
    plane.stop().await;
}
