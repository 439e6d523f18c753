//! The connections to the API server, and the credentials that they carry.
//!
//! As with client-go, a connection speaks HTTP/2 where the server does, and is found dead by pings.
//! Credentials are taken from their files again when these change: tokens with the next request,
//! client certificates and the server's authorities with a new connection, to which the requests
//! move while the watches on the old one run on. A credential plugin is asked again when the server
//! refuses what it gave last.

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
use crate::leaderelection::Fence;
use connect::connect;
use plugin_error::without_secrets;
use token_file::TokenFile;
use token_source::TokenSource;

pub use service_account_token::{NoToken, ServiceAccountName, ServiceAccountToken};

mod connect;
mod fenced_io;
mod plugin_error;
mod service_account_token;
mod token_file;
mod token_source;

/// How long the files of certificates are taken to be unchanged.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The same after the server has refused the credentials or the connection.
const CHECK_INTERVAL_IN_DOUBT: Duration = Duration::from_secs(1);
/// A credential plugin is not run again sooner than this, however often it is refused.
const PLUGIN_INTERVAL_MIN: Duration = Duration::from_secs(10);

/// Sends requests to the server of a [`Config`]. Clones share the connections.
#[derive(Clone)]
pub struct Transport(Arc<Shared>);

struct Shared {
    /// What connections are made from, without the token file.
    config: Config,
    token: Option<TokenSource>,
    /// What keeps the connections of a process that doesn't lead from sending.
    fence: Option<Fence>,
    /// The files of the client certificate and of the server's authorities.
    files: Vec<PathBuf>,
    state: Mutex<State>,
}

struct State {
    client: kube::Client,
    /// What the files held when the client was made.
    contents: Contents,
    /// What the files held when they could not be used, so that this is told once.
    unusable: Option<Contents>,
    checked: Instant,
    /// Whether a request has failed since the files were looked at.
    in_doubt: bool,
    /// The credential plugin, if there is one.
    plugin: Option<PluginState>,
    /// Whether somebody renews the credentials at the moment.
    checking: bool,
}

struct PluginState {
    ran: Instant,
    /// Whether the server has refused the credentials since it ran.
    refused: bool,
    /// Whether it has failed, so that this is told once.
    fails: bool,
}

impl PluginState {
    /// Of a plugin that has just given credentials.
    fn new() -> Self {
        Self {
            ran: Instant::now(),
            refused: false,
            fails: false,
        }
    }

    fn may_run(&self) -> bool {
        self.ran.elapsed() >= PLUGIN_INTERVAL_MIN
    }
}

type Contents = Vec<Option<Vec<u8>>>;

impl Transport {
    /// Connections as the configuration describes them; the first is opened with the first
    /// request. While the fence is closed they send nothing, not even reads, and break. Needs a
    /// running tokio runtime. Runs the credential plugin, if there is one.
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
        config: Config,
        fence: Option<Fence>,
        token: Option<TokenSource>,
    ) -> Result<Self, BoxError> {
        let info = &config.auth_info;
        let files: Vec<PathBuf> = [&info.client_certificate, &info.client_key]
            .into_iter()
            .flatten()
            .map(PathBuf::from)
            .chain(config.root_cert_file.clone())
            .collect();
        let contents = read(&files);
        let state = State {
            client: connect(&config, fence.as_ref()).map_err(without_secrets)?,
            contents,
            unusable: None,
            checked: Instant::now(),
            in_doubt: false,
            plugin: info.exec.as_ref().map(|_| PluginState::new()),
            checking: false,
        };
        Ok(Self(Arc::new(Shared {
            token,
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
            // Files and plugins take their time.
            tokio::task::spawn_blocking(move || shared.renew_credentials()).await?;
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
        let result = client.send(request).await.map_err(|err| match err {
            kube::Error::Service(source) => without_secrets(source),
            other => without_secrets(other.into()),
        });
        let is_unauthorized = result
            .as_ref()
            .is_ok_and(|response| response.status() == StatusCode::UNAUTHORIZED);
        if is_unauthorized || result.is_err() {
            let mut state = shared.state();
            state.in_doubt = true;
            if let Some(plugin) = &mut state.plugin {
                plugin.refused |= is_unauthorized || result.as_ref().is_err_and(may_be_refused);
            }
            drop(state);
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

    /// Whether the caller is to renew the credentials now. Others go on with what there is.
    fn is_due(&self) -> bool {
        let mut state = self.state();
        let interval = if state.in_doubt {
            CHECK_INTERVAL_IN_DOUBT
        } else {
            CHECK_INTERVAL
        };
        let files_are_due = !self.files.is_empty() && state.checked.elapsed() >= interval;
        let plugin = state.plugin.as_ref();
        let plugin_is_due = plugin.is_some_and(|it| it.refused && it.may_run());
        if state.checking || !(files_are_due || plugin_is_due) {
            return false;
        }
        state.checking = true;
        true
    }

    /// Makes a new client if the files have changed, or if the server has refused what a plugin
    /// gave.
    fn renew_credentials(&self) {
        let contents = read(&self.files);
        let (changed, is_needed) = {
            let state = self.state();
            let changed = state.contents != contents;
            // A new client runs the plugin.
            let plugin = state.plugin.as_ref();
            let is_refused = plugin.is_some_and(|it| it.refused);
            let may_run = plugin.is_none_or(PluginState::may_run);
            (changed, (changed || is_refused) && may_run)
        };
        let connected = is_needed.then(|| connect(&self.config, self.fence.as_ref()));
        let mut state = self.state();
        (state.checked, state.in_doubt, state.checking) = (Instant::now(), false, false);
        let Some(connected) = connected else {
            return;
        };
        let connected = connected.map_err(without_secrets);
        let is_failure = connected.is_err();
        let mut failed_before = false;
        if let Some(plugin) = &mut state.plugin {
            failed_before = plugin.fails;
            *plugin = PluginState {
                fails: is_failure && !changed,
                ..PluginState::new()
            };
        }
        match connected {
            Ok(client) => {
                if changed {
                    tracing::info!("certificates of the kubeconfig have changed, connecting anew");
                }
                if failed_before {
                    tracing::info!("the credential plugin gives credentials again");
                }
                (state.client, state.contents, state.unusable) = (client, contents, None);
            }
            Err(error) if changed => {
                // Files that change one after the other don't fit for a moment.
                if state.unusable.as_ref() != Some(&contents) {
                    tracing::warn!(%error, "cannot use the changed certificates of the kubeconfig, keeping those before");
                }
                state.unusable = Some(contents);
            }
            Err(error) if !failed_before => {
                tracing::warn!(%error, "cannot get credentials in the place of those that were refused");
            }
            Err(_) => {}
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
