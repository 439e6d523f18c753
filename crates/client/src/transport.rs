//! Connections to the API server and their credentials.
//!
//! As in client-go, a connection uses HTTP/2 if the server supports it, and pings detect dead
//! connections. Credentials are reloaded when their files change. A new token applies to the next
//! request. New client certificates or authorities need a new connection for later requests, while
//! watches continue on the old one. A credential plugin runs for the first request, and again when
//! its credentials expire or are rejected.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper_util::client::legacy;
use kube::client::Body;
use kube::config::{AuthInfo, Config};
use rustls::AlertDescription;
use tokio::time::Instant;
use tower::{BoxError, ServiceExt as _};

use crate::causes::causes;
use crate::fault_log::FaultLog;
use crate::fence::Fence;
use crate::not_processed::is_not_processed;
use crate::rest::{AnswerBody, RequestService};
use connect::connect;
use exec_plugin::ExecPlugin;
use token_file::TokenFile;
use token_source::TokenSource;

pub use service_account_token::{ServiceAccountName, ServiceAccountToken};

mod connect;
mod exec_plugin;
mod fenced_io;
mod service_account_token;
mod token_file;
mod token_source;

/// Interval between checks of the certificate files.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The interval after the server has rejected the credentials or the connection.
const CHECK_INTERVAL_IN_DOUBT: Duration = Duration::from_secs(1);

/// Sends requests to a [`Config`]'s server. Clones share the connections.
#[derive(Clone)]
pub struct Transport(Arc<Shared>);

struct Shared {
    /// Settings of new connections, without the token file and the credential plugin.
    config: Config,
    token: Option<TokenSource>,
    plugin: Option<ExecPlugin>,
    /// Blocks the connections of a process that isn't the leader.
    fence: Option<Fence>,
    /// The files of the client certificate and of the server's authorities.
    files: Vec<PathBuf>,
    state: Mutex<State>,
}

struct State {
    /// None until a credential plugin has returned credentials.
    client: Option<RequestService>,
    /// The files' contents when the client was created.
    contents: Contents,
    /// The unusable contents of the files.
    unusable: FaultLog<Contents>,
    checked: Instant,
    /// True if a request has failed since the last check of the files.
    in_doubt: bool,
    /// True while a request is renewing the credentials.
    checking: bool,
}

type Contents = Vec<Option<Vec<u8>>>;

impl Transport {
    /// Creates the connections of a configuration; the first request opens the first one. While the
    /// fence is closed they send nothing, not even reads, and break. Needs a running tokio runtime.
    /// A credential plugin runs for the first request.
    ///
    /// # Errors
    ///
    /// Fails if the credentials, the certificates or the proxy are invalid.
    pub fn new(mut config: Config, fence: Option<Fence>) -> Result<Self, BoxError> {
        // As in client-go, a file overrides a token in the kubeconfig. This crate reads it, because
        // kube also reads it every minute, but not after the server rejects a token.
        let token = config.auth_info.token_file.take();
        let token = token.map(TokenFile::open).transpose()?;
        if token.is_some() {
            config.auth_info.token = None;
        }
        Self::with_token(config, fence, token.map(TokenSource::File))
    }

    /// Creates connections to the configuration's server that authenticate as a service account,
    /// without the configuration's credentials.
    ///
    /// # Errors
    ///
    /// Fails if the certificates or the proxy are invalid.
    ///
    /// Upstream: `rest.AnonymousClientConfig`.
    pub fn of_service_account(
        mut config: Config,
        fence: Option<Fence>,
        token: ServiceAccountToken,
    ) -> Result<Self, BoxError> {
        config.auth_info = AuthInfo::default();
        let token = TokenSource::ServiceAccount(Box::new(token));
        Self::with_token(config, fence, Some(token))
    }

    /// Takes the token from the source, and everything else from the configuration.
    fn with_token(
        mut config: Config,
        fence: Option<Fence>,
        token: Option<TokenSource>,
    ) -> Result<Self, BoxError> {
        let plugin = ExecPlugin::take(&mut config.auth_info).filter(|_| token.is_none());
        let info = &config.auth_info;
        let files: Vec<PathBuf> = [&info.client_certificate, &info.client_key]
            .into_iter()
            .flatten()
            .map(PathBuf::from)
            .chain(config.root_cert_file.clone())
            .collect();
        let contents = read(&files);
        let connected = connect(&config, fence.as_ref())?;
        let state = State {
            client: plugin.is_none().then_some(connected),
            contents,
            unusable: FaultLog::default(),
            checked: Instant::now(),
            in_doubt: false,
            checking: false,
        };
        Ok(Self(Arc::new(Shared {
            token,
            plugin,
            fence,
            files,
            config,
            state: Mutex::new(state),
        })))
    }

    /// Sends a request and returns the response with any status.
    ///
    /// # Errors
    ///
    /// Fails if there is no response.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
        let shared = &self.0;
        if shared.is_due() {
            let shared = Arc::clone(shared);
            // Reading files may block.
            tokio::task::spawn_blocking(move || shared.renew_files()).await?;
        }
        if let Some(plugin) = &shared.plugin {
            plugin.renew(|auth| shared.reconnect(auth.clone())).await?;
        }
        let token = match &shared.token {
            Some(source) => Some(source.header().await?),
            None => None,
        };
        // Getting the credentials may have taken a while.
        if let Some(fence) = &shared.fence {
            fence.check()?;
        }
        if let Some(token) = &token {
            let headers = request.headers_mut();
            headers.insert(http::header::AUTHORIZATION, token.clone());
        }
        let client = shared.state().client.clone();
        let client = client.ok_or("not connected")?;
        let result = client.oneshot(request).await;
        let is_unauthorized = result
            .as_ref()
            .is_ok_and(|response| response.status() == StatusCode::UNAUTHORIZED);
        let is_broken = |error: &BoxError| !is_not_processed(error.as_ref());
        if is_unauthorized || result.as_ref().is_err_and(is_broken) {
            shared.state().in_doubt = true;
            if let Some(plugin) = &shared.plugin
                && (is_unauthorized || result.as_ref().is_err_and(may_be_refused))
            {
                plugin.refuse();
            }
            if let (Some(source), Some(token)) = (&shared.token, &token) {
                source.doubt(token, is_unauthorized);
            }
        }
        result
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses these credentials for new connections.
    fn reconnect(&self, auth: AuthInfo) -> Result<(), BoxError> {
        let mut config = self.config.clone();
        config.auth_info = auth;
        let client = connect(&config, self.fence.as_ref())?;
        self.state().client = Some(client);
        Ok(())
    }

    /// Returns true if the caller must check the files now. Other requests continue with the
    /// current client.
    fn is_due(&self) -> bool {
        let mut state = self.state();
        let interval = if state.in_doubt {
            CHECK_INTERVAL_IN_DOUBT
        } else {
            CHECK_INTERVAL
        };
        let is_due = !self.files.is_empty() && state.checked.elapsed() >= interval;
        if state.checking || !is_due || state.client.is_none() {
            return false;
        }
        state.checking = true;
        true
    }

    /// Creates a new client if the files have changed.
    fn renew_files(&self) {
        let contents = read(&self.files);
        let changed = self.state().contents != contents;
        let plugin = self.plugin.as_ref();
        let auth = plugin.map_or_else(|| Some(self.config.auth_info.clone()), ExecPlugin::kept);
        let connected = auth.filter(|_| changed).map(|auth| self.reconnect(auth));
        let mut state = self.state();
        (state.checked, state.in_doubt, state.checking) = (Instant::now(), false, false);
        match connected {
            None => {}
            Some(Ok(())) => {
                tracing::info!("certificates of the kubeconfig have changed, reconnecting");
                state.contents = contents;
                state.unusable.end();
            }
            Some(Err(error)) => {
                // While several files are being replaced, they don't match.
                let is_new = state.unusable.begin(contents);
                if is_new {
                    tracing::warn!(%error, "cannot use the changed certificates of the kubeconfig, keeping the previous ones");
                }
            }
        }
    }
}

/// Returns true if the server may have closed the connection because of the client certificate. TLS
/// 1.3 reports that after the handshake, and HTTP/2 then only reports a broken connection.
fn may_be_refused(error: &BoxError) -> bool {
    let first: &(dyn StdError + 'static) = error.as_ref();
    let is_unreachable = causes(first).any(|cause| {
        let error = cause.downcast_ref::<legacy::Error>();
        error.is_some_and(legacy::Error::is_connect)
    });
    !is_unreachable || is_certificate_refused(first)
}

/// Returns true if the server reports that it rejects the client certificate.
fn is_certificate_refused(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(
            cause.downcast_ref(),
            Some(rustls::Error::AlertReceived(
                AlertDescription::AccessDenied
                    | AlertDescription::BadCertificate
                    | AlertDescription::CertificateExpired
                    | AlertDescription::CertificateRequired
                    | AlertDescription::CertificateRevoked
                    | AlertDescription::CertificateUnknown
                    | AlertDescription::UnknownCA
                    | AlertDescription::UnsupportedCertificate
            ))
        )
    })
}

/// Reads the files' contents, as far as readable.
fn read(files: &[PathBuf]) -> Contents {
    files.iter().map(|path| std::fs::read(path).ok()).collect()
}

#[cfg(test)]
mod tests;
