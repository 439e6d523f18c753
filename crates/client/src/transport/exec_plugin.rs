//! Credential plugins: programs that print credentials.
//!
//! A plugin runs beside everything else, as a task. Requests wait for it only while there are no
//! credentials that can be used. It has no terminal and its time is limited; when that is over, or
//! nobody needs the plugin any more, it is killed with all the processes that it has started.
//!
//! Upstream: `client-go/plugin/pkg/client/auth/exec`.

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
use crate::error::NoToken;
use process_group::ProcessGroup;

mod process_group;

/// How long a plugin may take.
const RUN_MAX: Duration = Duration::from_secs(60);
/// How long its streams are read after its end: a process that it leaves behind may hold them open.
const STREAMS_MAX: Duration = Duration::from_secs(1);
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
    /// The run that goes on, or whose outcome nobody has taken up; it outlives the requests that
    /// wait for it.
    running: Option<Running>,
}

type Running = Shared<BoxFuture<'static, Run>>;

/// A run that is over.
#[derive(Clone)]
struct Run {
    ended: Instant,
    result: Result<Credentials, PluginError>,
}

struct Kept {
    auth: AuthInfo,
    expires: Option<Instant>,
}

/// What a plugin gave.
#[derive(Clone)]
struct Credentials {
    token: Option<String>,
    /// The certificate and its key, as PEM.
    certificate: Option<(String, String)>,
    expires: Option<Instant>,
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

    /// Runs the plugin if it is due, and waits for it if what is at hand has expired or was refused.
    /// Fresh credentials are taken up before any request goes on; if there are none, those at hand
    /// go on to be used.
    ///
    /// # Errors
    ///
    /// There are no credentials at all.
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

    /// Takes up what the last run gave, if it is over and nobody has done so.
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
    /// A run that ends now.
    fn of(result: Result<Credentials, PluginError>) -> Self {
        let ended = Instant::now();
        Self { ended, result }
    }
}

impl State {
    /// Begins a run if it is due. The run to wait for, if any.
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

    /// Whether there are credentials that should be accepted.
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

/// Starts a task that runs a plugin. It ends when nobody holds on to it any more.
fn start(exec: ExecConfig) -> Running {
    let mut task = JoinSet::new();
    task.spawn(run(exec).map(Run::of));
    let ended = async move {
        match task.join_next().await {
            Some(Ok(run)) => run,
            Some(Err(error)) => Run::of(Err(PluginError::Start(error.to_string()))),
            None => Run::of(Err(PluginError::Unusable)),
        }
    };
    ended.boxed().shared()
}

/// Runs a plugin to its end.
///
/// Upstream: `Authenticator.refreshCredsLocked`.
async fn run(exec: ExecConfig) -> Result<Credentials, PluginError> {
    let mut child = command(&exec)?
        .spawn()
        .map_err(|error| PluginError::Start(error.to_string()))?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ended = timeout(RUN_MAX, end(&mut child, &mut stdout, &mut stderr)).await;
    let status = ended
        .map_err(|_| PluginError::Hangs)?
        .map_err(|error| PluginError::Start(error.to_string()))?;
    if !status.success() {
        let separator = if stderr.is_empty() { "" } else { ": " };
        let said = last_line(&stderr);
        return Err(PluginError::Failed(format!("{status}{separator}{said}")));
    }
    parse(&stdout).ok_or(PluginError::Unusable)
}

/// Waits for the end of a plugin and reads its streams. Dropped before, it kills the plugin's group.
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
            // What was not read by then is not waited for.
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
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Reads a stream to its end, and keeps its beginning.
async fn read(stream: Option<impl AsyncRead + Unpin>, max: u64, kept: &mut Vec<u8>) {
    if let Some(mut stream) = stream {
        // What can't be read counts as not printed.
        let _ = (&mut stream).take(max).read_to_end(kept).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
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
