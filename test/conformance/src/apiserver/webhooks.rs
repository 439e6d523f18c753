//! The webhooks of a case: an HTTPS server on loopback that responds as recorded.

mod response;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube_test_control_plane::certificates::TlsMaterial;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub(super) use response::RecordedResponse;

/// Headers of a call that recordings hold.
const HEADERS: [&str; 3] = ["Accept", "Content-Type", "User-Agent"];

/// A running server of webhooks.
pub(super) struct Webhooks {
    /// The URL without a path.
    pub(super) url: String,
    /// The certificate of the authority, as configurations hold it.
    pub(super) ca_bundle: String,
    state: Arc<State>,
    /// Ends with this value.
    _connections: JoinSet<()>,
}

/// Responses and calls.
struct State {
    responses: Mutex<BTreeMap<String, RecordedResponse>>,
    calls: Mutex<Vec<Value>>,
}

impl Webhooks {
    /// Starts a server on a free port.
    ///
    /// # Errors
    ///
    /// No certificate could be made, or no port is free.
    pub(super) async fn start(
        responses: &BTreeMap<String, RecordedResponse>,
    ) -> anyhow::Result<Self> {
        let material = TlsMaterial::generate().context("make the webhooks' certificate")?;
        let acceptor = acceptor(&material).context("set up the webhooks' TLS")?;
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("listen for calls of webhooks")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            responses: Mutex::new(responses.clone()),
            calls: Mutex::default(),
        });
        let mut connections = JoinSet::new();
        connections.spawn(serve(listener, acceptor, Arc::clone(&state)));
        Ok(Self {
            url: format!("https://{address}"),
            ca_bundle: STANDARD.encode(&material.ca_pem),
            state,
            _connections: connections,
        })
    }

    /// Replaces the responses of these paths.
    pub(super) fn replace(&self, responses: &BTreeMap<String, RecordedResponse>) {
        let responses = responses
            .iter()
            .map(|(path, it)| (path.clone(), it.clone()));
        let known = self.state.responses.lock();
        known
            .unwrap_or_else(PoisonError::into_inner)
            .extend(responses);
    }

    /// Returns the calls since the last time, in the order of their arrival.
    pub(super) fn take_calls(&self) -> Vec<Value> {
        let calls = self.state.calls.lock();
        std::mem::take(&mut *calls.unwrap_or_else(PoisonError::into_inner))
    }
}

fn acceptor(material: &TlsMaterial) -> anyhow::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_slice_iter(material.server_pem.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(material.server_key_pem.as_bytes())?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(connection(stream, acceptor.clone(), Arc::clone(&state)));
    }
}

/// Serves one request. The client sees all errors.
async fn connection(stream: TcpStream, acceptor: TlsAcceptor, state: Arc<State>) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(|request| respond(&state, request));
    let _ = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Records a call and responds to it.
async fn respond(
    state: &State,
    request: Request<Incoming>,
) -> anyhow::Result<Response<Full<Bytes>>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let headers = HEADERS.map(|name| {
        let value = parts.headers.get(name).and_then(|it| it.to_str().ok());
        (name, value.unwrap_or_default())
    });
    let call = json!({
        "path": parts.uri.path_and_query().map_or("", |path| path.as_str()),
        "headers": BTreeMap::from(headers),
        "body": review,
    });
    let calls = state.calls.lock();
    calls.unwrap_or_else(PoisonError::into_inner).push(call);
    let response = {
        let responses = state.responses.lock();
        let responses = responses.unwrap_or_else(PoisonError::into_inner);
        responses.get(parts.uri.path()).cloned()
    };
    response
        .unwrap_or_else(RecordedResponse::unknown_path)
        .send(&review)
        .await
}
