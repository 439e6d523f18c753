//! Proxy in front of the API server with failure modes: dropped connections, and an expired server
//! certificate.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

/// Target of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The API server.
    Open,
    /// None: connections are closed immediately.
    Closed,
    /// A server with a certificate that expired long ago.
    Expired,
}

/// A loopback port that forwards clients to the API server, for the rest of the test.
pub(crate) struct Proxy {
    address: SocketAddr,
    authority_pem: String,
    state: Arc<Mutex<State>>,
}

struct State {
    target: Target,
    /// Both ends of the open connections.
    open: Vec<TcpStream>,
}

impl Proxy {
    /// Opens the port in front of a kubeconfig's server.
    pub(crate) fn before(kubeconfig: &Value) -> Self {
        let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str();
        let backend = server.unwrap().strip_prefix("https://").unwrap();
        let backend: SocketAddr = backend.parse().unwrap();
        let (authority_pem, expired) = expired_server();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            target: Target::Open,
            open: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // Connections end when either end closes.
                drop(serve(client, backend, &expired, &shared));
            }
        });
        Self {
            address,
            authority_pem,
            state,
        }
    }

    /// Changes a kubeconfig to use the port, and to trust the authorities of both servers.
    pub(crate) fn redirect_kubeconfig(&self, kubeconfig: &mut Value) {
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        cluster["server"] = json!(format!("https://{}", self.address));
        let data = cluster["certificate-authority-data"].as_str().unwrap();
        let mut authorities = STANDARD.decode(data).unwrap();
        authorities.extend_from_slice(self.authority_pem.as_bytes());
        cluster["certificate-authority-data"] = json!(STANDARD.encode(authorities));
    }

    /// Breaks open connections, and sets the target of new ones.
    pub(crate) fn switch_to(&self, target: Target) {
        let mut state = locked(&self.state);
        state.target = target;
        for stream in state.open.drain(..) {
            // The connection may have ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(
    mut client: TcpStream,
    backend: SocketAddr,
    expired: &Arc<ServerConfig>,
    state: &Mutex<State>,
) -> io::Result<()> {
    let mut state = locked(state);
    match state.target {
        Target::Closed => {}
        Target::Expired => {
            let expired = Arc::clone(expired);
            std::thread::spawn(move || {
                let connection = rustls::ServerConnection::new(expired);
                // The client closes the connection after it has seen the certificate.
                connection.map(|mut connection| connection.complete_io(&mut client))
            });
        }
        Target::Open => {
            let server = TcpStream::connect(backend)?;
            state
                .open
                .extend([client.try_clone()?, server.try_clone()?]);
            copy(client.try_clone()?, server.try_clone()?);
            copy(server, client);
        }
    }
    Ok(())
}

/// Copies one direction of a connection; closes the other direction at its end.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

/// An authority, and a server with an expired certificate of it.
fn expired_server() -> (String, Arc<ServerConfig>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (authority.pem(), Arc::new(config))
}
