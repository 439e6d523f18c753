//! A control plane and a controller for one session, and kubectl's way to them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::{Programs, Session, Step};
use crate::remote::{Certificates, Remote};

/// Every actor but the one that binds volumes: claims stay pending, and pods run all the same.
const ACTORS: &str = "kubelet,scheduler,garbage-collector,namespace-controller";

/// What stands for the folder with the session's files.
const FOLDER: &str = "$DIR";

/// How long the control plane may take to be ready.
const START_MAX: Duration = Duration::from_secs(30);

/// How long a command may take.
const COMMAND_MAX: Duration = Duration::from_secs(180);

/// The cluster has settled when nothing has been written for so long.
const QUIET: Duration = Duration::from_secs(1);

/// Nobody waits longer than this for it.
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// How often the server's revision is read meanwhile.
const POLL: Duration = Duration::from_millis(100);

/// How a command ended.
#[derive(Debug)]
pub(super) struct Finished {
    /// None if a signal ended it.
    pub(super) exit: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Running programs, which end with it.
pub(super) struct Cluster {
    kubectl: PathBuf,
    remote: Remote,
    folder: TempDir,
    control_plane: Child,
    controller: Child,
}

impl Cluster {
    /// Starts the programs and writes the session's files.
    pub(super) async fn start(session: &Session, programs: &Programs) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("make a folder")?;
        for (name, text) in &session.files {
            let path = folder.path().join(name);
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
        let token = uuid::Uuid::new_v4().to_string();
        let tokens = folder.path().join("tokens");
        std::fs::write(&tokens, format!("{token},settling,1,\"system:masters\"\n"))
            .with_context(|| format!("write {}", tokens.display()))?;
        let kubeconfig = folder.path().join("kubeconfig");
        let mut command = Command::new(&programs.control_plane);
        command
            .arg(format!("--actors={ACTORS}"))
            .arg("--token-auth-file")
            .arg(&tokens)
            .arg("--kubeconfig-out")
            .arg(&kubeconfig)
            .stdout(Stdio::piped());
        let mut control_plane = spawn(&mut command, &folder.path().join("control-plane.log"))?;
        let url = ready(&mut control_plane).await.with_context(|| {
            let log = std::fs::read_to_string(folder.path().join("control-plane.log"));
            format!("the control plane isn't ready: {}", log.unwrap_or_default())
        })?;
        let mut command = Command::new(&programs.controller);
        command
            .arg("--leader-elect=false")
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdout(Stdio::null());
        let controller = spawn(&mut command, &folder.path().join("controller.log"))?;
        Ok(Self {
            kubectl: programs.kubectl.clone(),
            remote: Remote::new(&url, &token, &Certificates::Unchecked)?,
            folder,
            control_plane,
            controller,
        })
    }

    /// Waits until nothing has been written for a while.
    pub(super) async fn settle(&self) -> anyhow::Result<()> {
        let end = Instant::now() + SETTLE_MAX;
        let mut last = Value::Null;
        let mut since = Instant::now();
        while since.elapsed() < QUIET && Instant::now() < end {
            let list = self.remote.get("/api/v1/namespaces").await?;
            // The version of any list is that of the whole store.
            let version = &list["metadata"]["resourceVersion"];
            if *version != last {
                last = version.clone();
                since = Instant::now();
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Runs a step's command.
    pub(super) async fn kubectl(&self, step: &Step) -> anyhow::Result<Finished> {
        let folder = self.folder.path().to_string_lossy();
        let command = step.command.replace(FOLDER, &folder);
        let mut words = command.split(' ');
        if words.next() != Some("kubectl") {
            bail!("{:?} doesn't begin with kubectl", step.command);
        }
        let mut kubectl = Command::new(&self.kubectl);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("KUBE") {
                kubectl.env_remove(name);
            }
        }
        kubectl
            .args(words)
            .env("HOME", self.folder.path())
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .env_remove("TMPDIR")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = timeout(COMMAND_MAX, kubectl.output())
            .await
            .map_err(|_| anyhow!("it hasn't ended after {} s", COMMAND_MAX.as_secs()))?
            .with_context(|| format!("run {}", self.kubectl.display()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&*folder, FOLDER);
        Ok(Finished {
            exit: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }

    /// Ends the programs.
    pub(super) async fn stop(mut self) {
        for child in [&mut self.controller, &mut self.control_plane] {
            // It may have ended already.
            let _ = child.kill().await;
        }
    }
}

fn spawn(command: &mut Command, log: &Path) -> anyhow::Result<Child> {
    let file = File::create(log).with_context(|| format!("create {}", log.display()))?;
    let child = command
        .stdin(Stdio::null())
        .stderr(file)
        .kill_on_drop(true)
        .spawn();
    child.with_context(|| {
        let program = Path::new(command.as_std().get_program());
        format!("run {}", program.display())
    })
}

/// Waits until the control plane tells its URL.
async fn ready(control_plane: &mut Child) -> anyhow::Result<String> {
    let stdout = control_plane.stdout.take().context("it has no output")?;
    let mut lines = BufReader::new(stdout).lines();
    let line = timeout(START_MAX, lines.next_line())
        .await
        .with_context(|| format!("it says nothing within {} s", START_MAX.as_secs()))??
        .context("it has ended")?;
    let url = line.strip_prefix("ready ");
    Ok(url.with_context(|| format!("it says {line:?}"))?.to_owned())
}
