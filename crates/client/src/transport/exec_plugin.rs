//! Credential plugins: programs that print credentials.
//!
//! A plugin runs in a separate task. Requests wait for it only if there are no usable credentials.
//! It has no terminal, and its time is limited. At the limit, or when no request needs it, it is
//! killed with all its child processes.
//!
//! Upstream: `client-go/plugin/pkg/client/auth/exec`.

use std::error::Error as StdError;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::{BoxFuture, Either, Shared, select};
use jiff::Timestamp;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tower::BoxError;

use crate::clock::{Clock, SystemClock};
use crate::error::{NoToken, PluginError, Preparation};
use process_group::ProcessGroup;

mod process_group;

/// Time limit of a plugin.
const RUN_MAX: Duration = Duration::from_secs(60);
/// Time for reading a plugin's streams after its exit: a leftover process may keep them open.
const STREAMS_MAX: Duration = Duration::from_secs(1);
/// Minimum interval between two runs, even after failures or rejected credentials.
pub(super) const INTERVAL_MIN: Duration = Duration::from_secs(10);
/// Credentials are renewed when they expire within this time.
const LEEWAY: Duration = Duration::from_secs(60);
/// Maximum number of bytes read from standard output.
const STDOUT_MAX: u64 = 1 << 20;
/// Maximum number of bytes read from standard error.
const STDERR_MAX: u64 = 4096;
/// Maximum number of characters of standard error that are logged.
const STDERR_LOGGED_MAX: usize = 200;

/// A plugin and its last credentials.
pub(super) struct ExecPlugin {
    exec: ExecConfig,
    /// The rest of the user's entry: the impersonated user.
    auth: AuthInfo,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    /// The end of the last run.
    ran: Option<Instant>,
    /// True if the server has rejected the last credentials.
    refused: bool,
    /// The failure of the last run, which was logged.
    failure: Option<PluginError>,
    /// The run in progress, or one whose result is not yet in use; it outlives the requests that
    /// wait for it.
    running: Option<Running>,
}

type Running = Shared<BoxFuture<'static, Run>>;

/// A finished run.
#[derive(Clone)]
struct Run {
    ended: Instant,
    result: Result<Credentials, PluginError>,
}

struct Kept {
    auth: AuthInfo,
    expires: Option<Instant>,
}

/// A plugin's credentials.
#[derive(Clone)]
struct Credentials {
    token: Option<String>,
    /// The certificate and its key, in PEM.
    certificate: Option<(String, String)>,
    expires: Option<Instant>,
}

impl ExecPlugin {
    /// Removes the plugin from a user's entry. Returns none if the entry has no plugin, or has
    /// other credentials that take precedence.
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

    /// Records that the server rejected the plugin's credentials.
    pub(super) fn refuse(&self) {
        self.state().refused = true;
    }

    /// Returns the current credentials.
    pub(super) fn kept(&self) -> Option<AuthInfo> {
        self.state().kept.as_ref().map(|kept| kept.auth.clone())
    }

    /// Runs the plugin if it is due, and waits for it if the current credentials have expired or
    /// were rejected. New credentials apply before any request continues. If there are none, the
    /// current ones stay in use.
    ///
    /// # Errors
    ///
    /// Fails if there are no credentials at all.
    pub(super) async fn renew(
        &self,
        take_up: impl Fn(&AuthInfo) -> Result<(), BoxError>,
    ) -> Result<(), NoToken> {
        self.take_up_run(&take_up);
        let running = self.state().run_to_wait_for(&self.exec);
        if let Some(running) = running {
            running.await;
            self.take_up_run(&take_up);
        }
        self.state().outcome()
    }

    /// Applies the result of the last run, once, if the run has finished.
    fn take_up_run(&self, take_up: impl Fn(&AuthInfo) -> Result<(), BoxError>) {
        let mut state = self.state();
        let run = state.running.clone().and_then(FutureExt::now_or_never);
        let Some(Run { ended, result }) = run else {
            return;
        };
        (state.running, state.ran) = (None, Some(ended));
        let taken = result.and_then(|given| {
            let auth = self.with(&given);
            take_up(&auth).map_err(|_| PluginError::Unusable)?;
            let expires = given.expires;
            Ok(Kept { auth, expires })
        });
        state.take_up(taken);
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

impl Run {
    /// Creates a run that ends now.
    fn of(result: Result<Credentials, PluginError>) -> Self {
        let ended = Instant::now();
        Self { ended, result }
    }
}

impl State {
    /// Starts a run if it is due. Returns the run that the caller must wait for, if any.
    fn run_to_wait_for(&mut self, exec: &ExecConfig) -> Option<Running> {
        if self.running.is_none() && self.is_due() {
            self.running = Some(start(exec.clone()));
        }
        self.running.clone().filter(|_| !self.is_usable())
    }

    fn is_due(&self) -> bool {
        let may_run = self.ran.is_none_or(|ran| ran.elapsed() >= INTERVAL_MIN);
        may_run && (!self.is_usable() || self.expires_within(LEEWAY))
    }

    /// Returns true if the server should accept the current credentials.
    fn is_usable(&self) -> bool {
        self.kept.is_some() && !self.refused && !self.expires_within(Duration::ZERO)
    }

    fn expires_within(&self, time: Duration) -> bool {
        let expires = self.kept.as_ref().and_then(|kept| kept.expires);
        expires.is_some_and(|expires| expires <= Instant::now() + time)
    }

    fn take_up(&mut self, taken: Result<Kept, PluginError>) {
        match taken {
            Ok(kept) => {
                if self.failure.take().is_some() {
                    tracing::info!("the credential plugin returns credentials again");
                }
                self.kept = Some(kept);
                self.refused = false;
            }
            Err(error) => {
                let last = self.failure.as_ref().map(ToString::to_string);
                if last != Some(error.to_string()) {
                    tracing::warn!(%error, "no credentials from the credential plugin, trying again");
                }
                self.failure = Some(error);
            }
        }
    }

    fn outcome(&self) -> Result<(), NoToken> {
        match (&self.kept, &self.failure) {
            (None, Some(failure)) => Err(failure.clone().into()),
            (None, None) => Err(PluginError::Unusable.into()),
            (Some(_), _) => Ok(()),
        }
    }
}

/// A plugin's output.
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

/// Starts a task that runs a plugin. It ends when its last handle is dropped.
fn start(exec: ExecConfig) -> Running {
    let mut task = JoinSet::new();
    task.spawn(run(exec).map(Run::of));
    let ended = async move {
        match task.join_next().await {
            Some(Ok(run)) => run,
            Some(Err(error)) => Run::of(Err(not_run(error))),
            None => Run::of(Err(PluginError::Unusable)),
        }
    };
    ended.boxed().shared()
}

/// Runs a plugin until it exits.
///
/// Upstream: `Authenticator.refreshCredsLocked`.
async fn run(exec: ExecConfig) -> Result<Credentials, PluginError> {
    let mut child = command(&exec)?.spawn().map_err(not_run)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ended = timeout(RUN_MAX, end(&mut child, &mut stdout, &mut stderr)).await;
    let status = ended
        .map_err(|_| PluginError::Hangs { after: RUN_MAX })?
        .map_err(not_run)?;
    if !status.success() {
        let said = last_line(&stderr);
        return Err(PluginError::Failed { status, said });
    }
    parse(&stdout).ok_or(PluginError::Unusable)
}

fn not_run(error: impl StdError + Send + Sync + 'static) -> PluginError {
    PluginError::Start(Preparation::new(error))
}

/// Waits for a plugin's exit and reads its streams. Dropping the future kills the plugin's process
/// group.
async fn end(
    child: &mut Child,
    stdout: &mut Vec<u8>,
    stderr: &mut Vec<u8>,
) -> std::io::Result<ExitStatus> {
    let mut group = ProcessGroup::of(child);
    let reading = pin!(futures::future::join(
        read(child.stdout.take(), STDOUT_MAX, stdout),
        read(child.stderr.take(), STDERR_MAX, stderr),
    ));
    let waiting = pin!(async {
        let status = child.wait().await;
        group.leave();
        status
    });
    match select(waiting, reading).await {
        Either::Left((status, reading)) => {
            // Unread output is ignored after the limit.
            let _ = timeout(STREAMS_MAX, reading).await;
            status
        }
        Either::Right((_, waiting)) => waiting.await,
    }
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
    #[cfg(unix)]
    command.process_group(0);
    Ok(command)
}

/// Reads a stream to its end and keeps its beginning.
async fn read(stream: Option<impl AsyncRead + Unpin>, max: u64, kept: &mut Vec<u8>) {
    if let Some(mut stream) = stream {
        // Unreadable output counts as missing.
        let _ = (&mut stream).take(max).read_to_end(kept).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
}

/// Returns the last nonempty line of a text, without control characters and truncated.
fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    let printable = |c: &char| !c.is_control();
    let line = line.unwrap_or_default().trim();
    line.chars()
        .filter(printable)
        .take(STDERR_LOGGED_MAX)
        .collect()
}

fn parse(printed: &[u8]) -> Option<Credentials> {
    let credential: ExecCredential = serde_json::from_slice(printed).ok()?;
    let status = credential.status?;
    let expires = match status.expiration_timestamp {
        Some(text) => {
            let expires: Timestamp = text.parse().ok()?;
            let left = expires.duration_since(SystemClock.now());
            Some(Instant::now() + Duration::try_from(left).unwrap_or_default())
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
        expires,
    })
}

#[cfg(test)]
mod tests;
