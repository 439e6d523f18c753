//! The connections to the API server, and the credentials that they carry.
//!
//! As with client-go, a connection speaks HTTP/2 where the server does, and is found dead by pings.
//! Credentials are taken from their files again when these change: tokens with the next request,
//! client certificates with a new connection, to which the requests move while the watches on the
//! old one run on. A credential plugin is asked again when the server refuses what it gave last.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use kube::client::Body;
use kube::config::Config;
use tokio::time::Instant;
use tower::BoxError;

use crate::leaderelection::Fence;
use connect::connect;
use token_file::TokenFile;

mod connect;
mod fenced_io;
mod token_file;

/// How long the files of a client certificate are taken to be unchanged.
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
    token: Option<TokenFile>,
    /// What keeps the connections of a process that doesn't lead from sending.
    fence: Option<Fence>,
    /// The files of the client certificate.
    files: Vec<PathBuf>,
    /// Whether a credential plugin is configured.
    has_plugin: bool,
    state: Mutex<State>,
}

struct State {
    client: kube::Client,
    /// What the files held when the client was made.
    contents: Contents,
    /// What the files held when they could not be used, so that this is told once.
    unusable: Option<Contents>,
    checked: Instant,
    in_doubt: bool,
    /// Whether somebody looks at the files at the moment.
    checking: bool,
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
        let info = &config.auth_info;
        let files: Vec<PathBuf> = [&info.client_certificate, &info.client_key]
            .into_iter()
            .flatten()
            .map(PathBuf::from)
            .collect();
        let contents = read(&files);
        let state = State {
            client: connect(&config, fence.as_ref())?,
            contents,
            unusable: None,
            checked: Instant::now(),
            in_doubt: false,
            checking: false,
        };
        Ok(Self(Arc::new(Shared {
            token,
            fence,
            files,
            has_plugin: info.exec.is_some(),
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
            tokio::task::spawn_blocking(move || shared.look_at_files()).await?;
        }
        let token = shared.token.as_ref().map(TokenFile::header);
        if let Some(token) = &token {
            let headers = request.headers_mut();
            headers.insert(http::header::AUTHORIZATION, token.clone());
        }
        let client = shared.state().client.clone();
        let result = client.send(request).await.map_err(|err| match err {
            kube::Error::Service(source) => source,
            other => BoxError::from(other),
        });
        let refused = match &result {
            Ok(response) => response.status() == StatusCode::UNAUTHORIZED,
            Err(_) => true,
        };
        if refused {
            shared.state().in_doubt = true;
            if let (Some(file), Some(token)) = (&shared.token, &token) {
                file.expire(token);
            }
        }
        result
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller is to look at the files now. Others go on with what there is.
    fn is_due(&self) -> bool {
        if self.files.is_empty() && !self.has_plugin {
            return false;
        }
        let mut state = self.state();
        let interval = match (state.in_doubt, self.has_plugin) {
            (true, true) => PLUGIN_INTERVAL_MIN,
            (true, false) => CHECK_INTERVAL_IN_DOUBT,
            (false, _) => CHECK_INTERVAL,
        };
        if state.checking || state.checked.elapsed() < interval {
            return false;
        }
        state.checking = true;
        true
    }

    /// Makes a new client if the files have changed, or if the server has refused what a plugin
    /// gave.
    fn look_at_files(&self) {
        let contents = read(&self.files);
        let is_needed = {
            let state = self.state();
            let changed = state.contents != contents && state.unusable.as_ref() != Some(&contents);
            changed || (state.in_doubt && self.has_plugin)
        };
        let connected = is_needed.then(|| connect(&self.config, self.fence.as_ref()));
        let mut state = self.state();
        (state.checked, state.in_doubt, state.checking) = (Instant::now(), false, false);
        match connected {
            None => {}
            Some(Ok(client)) => {
                if state.contents != contents {
                    tracing::info!("client certificate has changed, connecting anew");
                }
                (state.client, state.contents, state.unusable) = (client, contents, None);
            }
            Some(Err(error)) => {
                // Files that change one after the other don't fit for a moment.
                tracing::warn!(%error, "cannot use the changed client certificate, keeping the one before");
                state.unusable = Some(contents);
            }
        }
    }
}

/// What the files hold, as far as they can be read.
fn read(files: &[PathBuf]) -> Contents {
    files.iter().map(|path| std::fs::read(path).ok()).collect()
}

#[cfg(test)]
mod tests;
