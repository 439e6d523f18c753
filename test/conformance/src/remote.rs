//! A server behind a TLS port. Requests have no User-Agent, like the recorded ones.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail, ensure};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use kube_test_control_plane::reply::ResponseBody;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::exchange::{Answer, CONTROLLER_TOKEN, Credentials, authorize};

/// Verification of the server's certificate.
#[derive(Clone, Debug)]
pub enum Certificates {
    /// With the authorities in this file.
    Authority(PathBuf),
    /// Disabled.
    Unchecked,
}

/// A server with credentials.
#[derive(Clone)]
pub struct Remote {
    authority: Authority,
    token: String,
    controller_token: String,
    tls: Arc<ClientConfig>,
    /// Distinguishes the namespaces of this run from others.
    pub(crate) run: String,
}

impl std::fmt::Debug for Remote {
    /// Omits the tokens.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Remote")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// Creates a client for a URL; `token` is the administrator's.
    ///
    /// # Errors
    ///
    /// The URL isn't `https://HOST[:PORT]`, or the certificates can't be read.
    pub fn new(url: &str, token: &str, certificates: &Certificates) -> anyhow::Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("{url} is not a URL"))?;
        let has_path = !matches!(uri.path(), "" | "/") || uri.query().is_some();
        let (Some(authority), false) = (uri.authority(), has_path) else {
            bail!("{url} is not of the form https://HOST[:PORT]");
        };
        ensure!(
            uri.scheme() == Some(&Scheme::HTTPS),
            "{url} is not of the form https://HOST[:PORT]"
        );
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .context("set up TLS")?;
        let tls = match certificates {
            Certificates::Unchecked => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unchecked::new(&provider)))
                .with_no_client_auth(),
            Certificates::Authority(path) => builder
                .with_root_certificates(authorities(path)?)
                .with_no_client_auth(),
        };
        Ok(Self {
            authority: authority.clone(),
            token: token.to_owned(),
            controller_token: CONTROLLER_TOKEN.to_owned(),
            tls: Arc::new(tls),
            run: uuid::Uuid::new_v4().simple().to_string()[..8].to_owned(),
        })
    }

    /// Sets the token to send for the controller's recorded token.
    #[must_use]
    pub fn with_controller_token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.controller_token);
        self
    }

    /// Returns true if the server is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host == "localhost"
            || host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }

    /// Host name or address of the server, without brackets.
    fn host(&self) -> &str {
        let host = self.authority.host();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Reads an object as the administrator.
    ///
    /// # Errors
    ///
    /// The server is unreachable, or rejects the request.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.read(path).await?)?)
    }

    /// Reads any text as the administrator.
    ///
    /// # Errors
    ///
    /// The server is unreachable, rejects the request, or doesn't return text.
    pub async fn text(&self, path: &str) -> anyhow::Result<String> {
        Ok(String::from_utf8(self.read(path).await?.into())?)
    }

    /// Creates or replaces an object as the administrator.
    ///
    /// # Errors
    ///
    /// The server is unreachable, or rejects the request.
    pub async fn write(&self, method: Method, path: &str, object: &Value) -> anyhow::Result<()> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(object.to_string()))?;
        self.success(request).await.map(drop)
    }

    async fn read(&self, path: &str) -> anyhow::Result<Bytes> {
        self.success(Request::get(path).body(Full::default())?)
            .await
    }

    /// Sends a request as the administrator. Returns the body of a successful response.
    async fn success(&self, request: Request<Full<Bytes>>) -> anyhow::Result<Bytes> {
        let what = format!("{} {}", request.method(), request.uri());
        let answer = self.send(request, &Credentials::Administrator).await?;
        let status = answer.parts.status;
        let body = answer.body.collect().await;
        let body = body.map_err(|error| anyhow!("read the answer: {error}"))?;
        ensure!(status.is_success(), "{what}: the server answers {status}");
        Ok(body.to_bytes())
    }

    /// Sends a request over its own connection.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        credentials: &Credentials,
    ) -> anyhow::Result<Answer> {
        match credentials {
            Credentials::Nobody => {}
            Credentials::Administrator => authorize(&mut request, &self.token)?,
            Credentials::Token(token) if token == CONTROLLER_TOKEN => {
                authorize(&mut request, &self.controller_token)?;
            }
            Credentials::Token(token) => authorize(&mut request, token)?,
        }
        let host = HeaderValue::from_str(self.authority.as_str())?;
        request.headers_mut().insert(HOST, host);
        let ask = self.ask(request).await;
        ask.with_context(|| format!("ask https://{}", self.authority))
    }

    async fn ask(&self, request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
        let host = self.host();
        let port = self.authority.port_u16().unwrap_or(443);
        let stream = TcpStream::connect((host, port)).await?;
        let name = ServerName::try_from(host.to_owned())?;
        let tls = TlsConnector::from(Arc::clone(&self.tls));
        let stream = tls.connect(name, stream).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            // The request or its body reports connection errors.
            let _ = connection.await;
        });
        let (parts, body) = sender.send_request(request).await?.into_parts();
        let body: ResponseBody = body.map_err(Into::into).boxed_unsync();
        Ok(Answer {
            parts,
            body,
            _connection: connections,
        })
    }
}

fn authorities(path: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("read the certificates in {}", path.display()))?;
    for certificate in certificates {
        let added = roots.add(certificate);
        added.with_context(|| format!("use the certificates in {}", path.display()))?;
    }
    ensure!(!roots.is_empty(), "{} holds no certificate", path.display());
    Ok(roots)
}

/// Accepts any certificate whose key the server holds.
#[derive(Debug)]
struct Unchecked(WebPkiSupportedAlgorithms);

impl Unchecked {
    fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
