//! The API server under load.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;

use super::args::Args;
use super::program::Process;
use super::requests::{AGENT, Requests};

/// Name of the embedded server's program, in the folder of this one.
const PROGRAM: &str = "kube-test-control-plane";
/// An embedded server of its own process, or one that runs elsewhere.
pub(crate) struct ApiServer {
    /// The driver's client.
    pub(crate) client: Client,
    /// The controller's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// The server's process, if it is known.
    pub(crate) process: Option<Process>,
    embedded: Option<Embedded>,
}

struct Embedded {
    child: Child,
    folder: TempDir,
}

impl ApiServer {
    /// Starts the embedded server, or connects to the one of the kubeconfig.
    pub(crate) async fn start(args: &Args) -> anyhow::Result<Self> {
        let Some(kubeconfig) = &args.kubeconfig else {
            let embedded = Embedded::start()?;
            let kubeconfig = embedded.kubeconfig();
            return Ok(Self {
                client: connect(&kubeconfig).await?,
                kubeconfig,
                process: Some(Process(embedded.child.id())),
                embedded: Some(embedded),
            });
        };
        Ok(Self {
            client: connect(kubeconfig).await?,
            kubeconfig: kubeconfig.clone(),
            process: args.api_server_pid.map(Process),
            embedded: None,
        })
    }

    /// Counts of its requests from now on. The title is for a line about a server without counts.
    pub(crate) async fn requests(&self, title: &str) -> anyhow::Result<Requests> {
        match &self.embedded {
            Some(embedded) => Requests::of_audit_log(embedded.audit_log()),
            None => Requests::of_metrics(self.client.clone(), title).await,
        }
    }

    /// Ends the embedded server.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        let Some(mut embedded) = self.embedded else {
            return Ok(());
        };
        let early = embedded.child.try_wait()?;
        ensure!(early.is_none(), "the embedded API server ended early");
        Ok(())
    }
}

async fn connect(kubeconfig: &Path) -> anyhow::Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("read {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let agent = HeaderValue::from_static(AGENT);
    config.headers.push((USER_AGENT, agent));
    Ok(Client::try_from(config)?)
}

impl Embedded {
    /// Without actors: the driver plays the kubelet.
    fn start() -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("find this program")?;
        let program = own.with_file_name(PROGRAM);
        let path = program.display();
        ensure!(
            program.is_file(),
            "{path} is missing: build it with `cargo build --release -p {PROGRAM} --features \
             {PROGRAM}/cli`, or use --kubeconfig"
        );
        let folder = tempfile::tempdir().context("create a folder for the API server")?;
        let mut child = Command::new(&program)
            .arg("--actors=")
            .arg("--kubeconfig-out")
            .arg(folder.path().join("kubeconfig"))
            .arg("--audit-log-path")
            .arg(folder.path().join("audit.log"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {path}"))?;
        let output = child.stdout.take();
        let embedded = Self { child, folder };
        let mut line = String::new();
        let output = output.context("the API server has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line.starts_with("ready"), "{path} is not ready: {line}");
        Ok(embedded)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn audit_log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // Both fail for a server that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
