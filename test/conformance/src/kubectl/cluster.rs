//! Control plane and controller of one session, with kubectl's access to them.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::programs::Programs;
use super::session::{Session, Step};
use crate::programs::{ready, spawn};
use crate::remote::{Certificates, Remote};

/// All actors except the volume binder: claims stay pending, and pods run nevertheless.
const ACTORS: &str = "kubelet,scheduler,garbage-collector,namespace-controller";

/// Placeholder of the folder with the session's files.
const FOLDER: &str = "$DIR";

/// Subfolder of the session's files, in the folder of the programs' own files.
const MANIFESTS: &str = "manifests";

/// Time limit for a command.
const COMMAND_MAX: Duration = Duration::from_secs(180);

/// Time without writes after which the cluster counts as settled.
const QUIET: Duration = Duration::from_secs(1);

/// Time limit for the cluster to settle.
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// Interval between reads of the server's revision.
const POLL: Duration = Duration::from_millis(100);

/// Result of a command.
#[derive(Debug)]
pub(super) struct Finished {
    /// `None` if a signal ended it.
    pub(super) exit: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Running programs, stopped on drop.
pub(super) struct RunningPrograms {
    kubectl: PathBuf,
    remote: Remote,
    folder: TempDir,
    control_plane: Child,
    controller: Child,
}

impl RunningPrograms {
    /// Starts the programs and writes the session's files.
    pub(super) async fn start(session: &Session, programs: &Programs) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("make a folder")?;
        let manifests = folder.path().join(MANIFESTS);
        std::fs::create_dir(&manifests).with_context(|| format!("make {}", manifests.display()))?;
        for (name, text) in &session.files {
            let path = manifests.join(name);
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
            .args(["--leader-elect=false", "--secure-port=0"])
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

    /// Runs a step's command to its end.
    pub(super) async fn kubectl(&self, step: &Step) -> anyhow::Result<Finished> {
        let output = timeout(COMMAND_MAX, self.command(step)?.output())
            .await
            .map_err(|_| anyhow!("still running after {} s", COMMAND_MAX.as_secs()))?
            .with_context(|| format!("run {}", self.kubectl.display()))?;
        Ok(Finished {
            exit: output.status.code(),
            stdout: self.text(&output.stdout),
            stderr: self.text(&output.stderr),
        })
    }

    /// Starts a watching command.
    pub(super) fn start_watch(&self, step: &Step) -> anyhow::Result<Child> {
        let child = self
            .command(step)?
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.with_context(|| format!("run {}", self.kubectl.display()))
    }

    /// Stops a watching command, which then counts as exited with `exit`; an earlier exit is an
    /// error.
    pub(super) async fn end_watch(&self, mut watch: Child, exit: i32) -> anyhow::Result<Finished> {
        let ended = watch.try_wait()?;
        if ended.is_none() {
            watch.start_kill()?;
        }
        let output = watch.wait_with_output().await?;
        let stderr = self.text(&output.stderr);
        ensure!(ended.is_none(), "exited before it was stopped: {stderr}");
        Ok(Finished {
            exit: Some(exit),
            stdout: self.text(&output.stdout),
            stderr,
        })
    }

    fn command(&self, step: &Step) -> anyhow::Result<Command> {
        let (folder, manifests) = (self.folder.path(), self.manifests());
        let fill = |text: &str| text.replace(FOLDER, &manifests);
        let command = fill(&step.command);
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
            // The server uses the program name as field manager.
            .arg0("kubectl")
            .args(words)
            .env("HOME", folder)
            .env("KUBECONFIG", folder.join("kubeconfig"))
            .env_remove("TMPDIR")
            .envs(
                step.environment
                    .iter()
                    .map(|(name, value)| (name, fill(value))),
            )
            .stdin(Stdio::null())
            .kill_on_drop(true);
        Ok(kubectl)
    }

    /// Output of a command, with its folder masked.
    fn text(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace(&self.manifests(), FOLDER)
    }

    fn manifests(&self) -> String {
        let path = self.folder.path().join(MANIFESTS);
        path.to_string_lossy().into_owned()
    }

    /// Stops the programs.
    pub(super) async fn stop(mut self) {
        for child in [&mut self.controller, &mut self.control_plane] {
            // The process may have ended already.
            let _ = child.kill().await;
        }
    }
}
