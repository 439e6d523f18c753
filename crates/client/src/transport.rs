//! The connections to the API server, and the credentials that they carry.
//!
//! As with client-go, a connection speaks HTTP/2 where the server does, and is found dead by pings.
//! Credentials are taken from their files again when these change: tokens with the next request,
//! client certificates and the server's authorities with a new connection, to which the requests
//! move while the watches on the old one run on. A credential plugin is run with the first request,
//! and again when what it gave last is over or refused.

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
use tower::BoxError;

use crate::error::causes;
use crate::fault_log::FaultLog;
use crate::fence::Fence;
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

/// How long the files of certificates are taken to be unchanged.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The same after the server has refused the credentials or the connection.
const CHECK_INTERVAL_IN_DOUBT: Duration = Duration::from_secs(1);

/// Sends requests to the server of a [`Config`]. Clones share the connections.
#[derive(Clone)]
pub struct Transport(Arc<Shared>);

struct Shared {
    /// What connections are made from, without the token file and the credential plugin.
    config: Config,
    token: Option<TokenSource>,
    plugin: Option<ExecPlugin>,
    /// What keeps the connections of a process that doesn't lead from sending.
    fence: Option<Fence>,
    /// The files of the client certificate and of the server's authorities.
    files: Vec<PathBuf>,
    state: Mutex<State>,
}

struct State {
    /// None until a credential plugin has given credentials.
    client: Option<kube::Client>,
    /// What the files held when the client was made.
    contents: Contents,
    /// What the files held when they could not be used.
    unusable: FaultLog<Contents>,
    checked: Instant,
    /// Whether a request has failed since the files were looked at.
    in_doubt: bool,
    /// Whether somebody renews the credentials at the moment.
    checking: bool,
}

type Contents = Vec<Option<Vec<u8>>>;

impl Transport {
    /// Connections as the configuration describes them; the first is opened with the first
    /// request. While the fence is closed they send nothing, not even reads, and break. Needs a
    /// running tokio runtime. A credential plugin, if there is one, runs with the first request.
    ///
    /// # Errors
    ///
    /// Credentials, certificates or the proxy are of no use.
    pub fn new(mut config: Config, fence: Option<Fence>) -> Result<Self, BoxError> {
        // A file wins over a token in the kubeconfig, as with client-go, and is read by us: kube
        // reads it every minute too, but not when the server refuses a token before.
        let token = config.auth_info.token_file.take();
        let token = token.map(TokenFile::open).transpose()?;
        if token.is_some() {
            config.auth_info.token = None;
        }
        Self::with_token(config, fence, token.map(TokenSource::File))
    }

    /// Connections to the server of the configuration, for a service account: of its credentials
    /// none is used.
    ///
    /// # Errors
    ///
    /// Certificates or the proxy are of no use.
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

    /// Takes the token from the source, and all else from the configuration.
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

    /// Sends a request and returns the answer, of whatever status.
    ///
    /// # Errors
    ///
    /// No answer came.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let shared = &self.0;
        if shared.is_due() {
            let shared = Arc::clone(shared);
            // Files take their time.
            tokio::task::spawn_blocking(move || shared.renew_files()).await?;
        }
        if let Some(plugin) = &shared.plugin {
            plugin.renew(|auth| shared.reconnect(auth.clone())).await?;
        }
        let token = match &shared.token {
            Some(source) => Some(source.header().await?),
            None => None,
        };
        // Getting the credentials may have taken its time.
        if let Some(fence) = &shared.fence {
            fence.check()?;
        }
        if let Some(token) = &token {
            let headers = request.headers_mut();
            headers.insert(http::header::AUTHORIZATION, token.clone());
        }
        let client = shared.state().client.clone();
        let client = client.ok_or("not connected")?;
        let result = client.send(request).await.map_err(|err| match err {
            kube::Error::Service(source) => source,
            other => other.into(),
        });
        let is_unauthorized = result
            .as_ref()
            .is_ok_and(|response| response.status() == StatusCode::UNAUTHORIZED);
        if is_unauthorized || result.is_err() {
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

    /// Connects with these credentials from now on.
    fn reconnect(&self, auth: AuthInfo) -> Result<(), BoxError> {
        let mut config = self.config.clone();
        config.auth_info = auth;
        let client = connect(&config, self.fence.as_ref())?;
        self.state().client = Some(client);
        Ok(())
    }

    /// Whether the caller is to look at the files now. Others go on with what there is.
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

    /// Makes a new client if the files have changed.
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
                tracing::info!("certificates of the kubeconfig have changed, connecting anew");
                state.contents = contents;
                state.unusable.end();
            }
            Some(Err(error)) => {
                // Files that change one after the other don't fit for a moment.
                let is_new = state.unusable.begin(contents);
                if is_new {
                    tracing::warn!(%error, "cannot use the changed certificates of the kubeconfig, keeping those before");
                }
            }
        }
    }
}

/// Whether the server may have ended the connection because of our certificate. If it says so after
/// the handshake, as TLS 1.3 has it, HTTP/2 keeps no more of it than that the connection broke.
fn may_be_refused(error: &BoxError) -> bool {
    let first: &(dyn StdError + 'static) = error.as_ref();
    let is_unreachable = causes(first).any(|cause| {
        let error = cause.downcast_ref::<legacy::Error>();
        error.is_some_and(legacy::Error::is_connect)
    });
    !is_unreachable || is_certificate_refused(first)
}

/// Whether the server says that it refuses our certificate.
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

/// What the files hold, as far as they can be read.
fn read(files: &[PathBuf]) -> Contents {
    files.iter().map(|path| std::fs::read(path).ok()).collect()
}

#[cfg(test)]
mod tests;
