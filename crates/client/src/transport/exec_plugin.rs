//! Credential plugins: programs that print credentials.
//!
//! A plugin runs beside everything else: a request waits for it, no thread does. It has no terminal,
//! its time is limited, and it is killed when nobody needs it any more.
//!
//! Upstream: `client-go/plugin/pkg/client/auth/exec`.

use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use jiff::Timestamp;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::{Instant, timeout};
use tower::BoxError;

use super::service_account_token::NoToken;
use crate::clock::{Clock, SystemClock};

/// How long a plugin may take.
const RUN_MAX: Duration = Duration::from_secs(60);
/// A plugin is not run again sooner than this, however often it fails or is refused.
pub(super) const INTERVAL_MIN: Duration = Duration::from_secs(10);
/// Credentials are replaced when they have less than this to live.
const LEEWAY: Duration = Duration::from_secs(60);
/// The most bytes of its standard output that are read.
const STDOUT_MAX: u64 = 1 << 20;
/// The most bytes of its standard error that are read.
const STDERR_MAX: u64 = 4096;
/// The most characters of its standard error that are logged.
const TOLD_MAX: usize = 200;

/// A plugin and what it gave last.
pub(super) struct ExecPlugin {
    exec: ExecConfig,
    /// The rest of the user's entry: whom to act as.
    auth: AuthInfo,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    /// When it ended last.
    ran: Option<Instant>,
    /// Whether the server has refused what it gave last.
    refused: bool,
    /// Why it gave nothing when it ran last; this was logged.
    failure: Option<PluginError>,
    /// The run that goes on; it outlives the requests that wait for it.
    running: Option<Running>,
}

type Running = Shared<BoxFuture<'static, Result<Credentials, PluginError>>>;

struct Kept {
    auth: AuthInfo,
    due: Option<Instant>,
}

/// What a plugin gave.
#[derive(Clone)]
struct Credentials {
    token: Option<String>,
    /// The certificate and its key, as PEM.
    certificate: Option<(String, String)>,
    lifetime: Option<Duration>,
}

/// Why a plugin gave no credentials; without a word of its standard output, where tokens stand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum PluginError {
    #[error("the credential plugin has no command")]
    NoCommand,
    #[error("the credential plugin wants a terminal (interactiveMode: Always), and there is none")]
    Interactive,
    #[error("cannot run the credential plugin: {0}")]
    Start(String),
    #[error("the credential plugin has not ended within {} s", RUN_MAX.as_secs())]
    Hangs,
    #[error("the credential plugin ended with {0}")]
    Failed(String),
    #[error("the credential plugin gave no credentials that can be used")]
    Unusable,
}

impl ExecPlugin {
    /// The plugin of a user's entry, which loses it; none if there is none, or if the entry has
    /// other credentials that come before it.
    pub(super) fn take(info: &mut AuthInfo) -> Option<Self> {
        let exec = info.exec.take()?;
        let has_password = info.username.is_some() && info.password.is_some();
        if has_password || info.token.is_some() || info.auth_provider.is_some() {
            return None;
        }
        Some(Self {
            exec,
            auth: info.clone(),
            state: Mutex::default(),
        })
    }

    /// Notes that the server has refused what the plugin gave.
    pub(super) fn refuse(&self) {
        self.state().refused = true;
    }

    /// The credentials at hand.
    pub(super) fn kept(&self) -> Option<AuthInfo> {
        self.state().kept.as_ref().map(|kept| kept.auth.clone())
    }

    /// Runs the plugin if it is due. Fresh credentials are taken up before any request goes on; if
    /// there are none, those at hand go on to be used.
    ///
    /// # Errors
    ///
    /// There are no credentials at all.
    pub(super) async fn renew(
        &self,
        take_up: impl FnOnce(&AuthInfo) -> Result<(), BoxError>,
    ) -> Result<(), NoToken> {
        let Some(running) = self.state().run_if_due(&self.exec) else {
            return self.state().outcome();
        };
        let result = running.clone().await;
        let mut state = self.state();
        let is_first = state.running.take_if(|it| it.ptr_eq(&running)).is_some();
        if is_first {
            state.ran = Some(Instant::now());
            let auth = result.map(|given| (self.with(&given), given.lifetime));
            let taken = auth.and_then(|(auth, lifetime)| {
                take_up(&auth).map_err(|_| PluginError::Unusable)?;
                let due = lifetime.map(|time| Instant::now() + time.saturating_sub(LEEWAY));
                Ok(Kept { auth, due })
            });
            state.take_up(taken);
        }
        state.outcome()
    }

    fn with(&self, given: &Credentials) -> AuthInfo {
        let mut auth = self.auth.clone();
        auth.token = given.token.clone().map(Into::into);
        if let Some((certificate, key)) = &given.certificate {
            (auth.client_certificate, auth.client_key) = (None, None);
            auth.client_certificate_data = Some(STANDARD.encode(certificate));
            auth.client_key_data = Some(STANDARD.encode(key).into());
        }
        auth
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The run to wait for, if any.
    fn run_if_due(&mut self, exec: &ExecConfig) -> Option<Running> {
        if self.running.is_none() && self.is_due() {
            self.running = Some(run(exec.clone()).boxed().shared());
        }
        self.running.clone()
    }

    fn is_due(&self) -> bool {
        let may_run = self.ran.is_none_or(|ran| ran.elapsed() >= INTERVAL_MIN);
        let Some(kept) = &self.kept else {
            return may_run;
        };
        let is_over = kept.due.is_some_and(|due| Instant::now() >= due);
        may_run && (is_over || self.refused)
    }

    fn take_up(&mut self, taken: Result<Kept, PluginError>) {
        match taken {
            Ok(kept) => {
                if self.failure.take().is_some() {
                    tracing::info!("the credential plugin gives credentials again");
                }
                self.kept = Some(kept);
                self.refused = false;
            }
            Err(error) => {
                if self.failure.as_ref() != Some(&error) {
                    tracing::warn!(%error, "no credentials from the credential plugin, trying again");
                }
                self.failure = Some(error);
            }
        }
    }

    fn outcome(&self) -> Result<(), NoToken> {
        match (&self.kept, &self.failure) {
            (None, Some(failure)) => Err(NoToken::Plugin(failure.to_string())),
            (None, None) => Err(NoToken::Plugin(PluginError::Unusable.to_string())),
            (Some(_), _) => Ok(()),
        }
    }
}

/// What a plugin prints.
#[derive(Deserialize)]
struct ExecCredential {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs a plugin to its end.
///
/// Upstream: `Authenticator.refreshCredsLocked`.
async fn run(exec: ExecConfig) -> Result<Credentials, PluginError> {
    let mut child = command(&exec)?
        .spawn()
        .map_err(|error| PluginError::Start(error.to_string()))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let running = async {
        tokio::join!(
            child.wait(),
            read(stdout, STDOUT_MAX),
            read(stderr, STDERR_MAX)
        )
    };
    let Ok((ended, stdout, stderr)) = timeout(RUN_MAX, running).await else {
        return Err(PluginError::Hangs);
    };
    let status = ended.map_err(|error| PluginError::Start(error.to_string()))?;
    if !status.success() {
        let separator = if stderr.is_empty() { "" } else { ": " };
        let said = last_line(&stderr);
        return Err(PluginError::Failed(format!("{status}{separator}{said}")));
    }
    parse(&stdout).ok_or(PluginError::Unusable)
}

fn command(exec: &ExecConfig) -> Result<Command, PluginError> {
    if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(PluginError::Interactive);
    }
    let program = exec.command.as_ref().ok_or(PluginError::NoCommand)?;
    let mut command = Command::new(program);
    command.args(exec.args.iter().flatten());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    let spec = if exec.provide_cluster_info {
        json!({"interactive": false, "cluster": exec.cluster})
    } else {
        json!({"interactive": false})
    };
    let info = json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec});
    command
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok(command)
}

/// Reads a stream to its end, and keeps its beginning.
async fn read(stream: Option<impl AsyncRead + Unpin>, max: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        // What can't be read counts as not printed.
        let _ = (&mut stream).take(max).read_to_end(&mut kept).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    kept
}

/// The last line of a text that says anything, without control characters, cut to a length.
fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    let printable = |c: &char| !c.is_control();
    let line = line.unwrap_or_default().trim();
    line.chars().filter(printable).take(TOLD_MAX).collect()
}

fn parse(printed: &[u8]) -> Option<Credentials> {
    let credential: ExecCredential = serde_json::from_slice(printed).ok()?;
    let status = credential.status?;
    let lifetime = match status.expiration_timestamp {
        Some(text) => {
            let expires: Timestamp = text.parse().ok()?;
            let left = expires.duration_since(SystemClock.now());
            Some(Duration::try_from(left).unwrap_or_default())
        }
        None => None,
    };
    let certificate = status.client_certificate_data.zip(status.client_key_data);
    if status.token.is_none() && certificate.is_none() {
        return None;
    }
    Some(Credentials {
        token: status.token,
        certificate,
        lifetime,
    })
}

#[cfg(test)]
mod tests;
