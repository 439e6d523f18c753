//! Starts a kube-apiserver and an etcd, as envtest does.

mod flags;
mod folder;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_test_control_plane_server::certificates::TlsMaterial;
use tokio::time::{Instant, sleep};

use super::error::{BinaryError, ClusterError, ConnectError};
use super::process::Process;
use super::request::request_within;
use crate::kubeconfig::{Credential, kubeconfig};
use folder::Folder;

const KUBE_APISERVER: &str = "kube-apiserver";
const ETCD: &str = "etcd";
/// The default timeout for start and stop, as in envtest.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The interval between readiness checks.
const POLL: Duration = Duration::from_millis(100);
/// The timeout of a readiness check.
const RESPONSE_MAX: Duration = Duration::from_secs(2);
/// Maximum number of starts. A start fails if another process takes a chosen port first.
const ATTEMPTS_MAX: usize = 3;
/// The message of both programs for a port in use.
const PORT_TAKEN: &str = "address already in use";

/// The binaries of a control plane, and their timeouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assets {
    kube_apiserver: PathBuf,
    etcd: PathBuf,
    start_timeout: Duration,
    stop_timeout: Duration,
    flags: Vec<String>,
}

impl Assets {
    /// Returns the binaries in a folder.
    ///
    /// # Errors
    ///
    /// The folder does not exist, or a binary is missing or not executable.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Result<Self, ClusterError> {
        let folder = folder.into();
        if !folder.is_dir() {
            let source = if folder.exists() {
                BinaryError::NotAFolder
            } else {
                BinaryError::NoFolder
            };
            return Err(unusable(folder, source));
        }
        Ok(Self {
            kube_apiserver: executable(folder.join(KUBE_APISERVER))?,
            etcd: executable(folder.join(ETCD))?,
            start_timeout: TIMEOUT,
            stop_timeout: TIMEOUT,
            flags: Vec::new(),
        })
    }

    /// Sets the maximum time until both are ready; 20 s by default.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets the maximum time until each exits before it is killed; 20 s by default.
    #[must_use]
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// Adds flags for kube-apiserver. The last value of a repeated flag wins.
    #[must_use]
    pub fn kube_apiserver_flags(mut self, flags: impl IntoIterator<Item = String>) -> Self {
        self.flags.extend(flags);
        self
    }
}

fn unusable(path: PathBuf, source: BinaryError) -> ClusterError {
    ClusterError::Binary { path, source }
}

fn executable(path: PathBuf) -> Result<PathBuf, ClusterError> {
    match std::fs::metadata(&path) {
        Ok(metadata) if !metadata.is_file() => Err(unusable(path, BinaryError::NotAFile)),
        Ok(metadata) if !may_be_executed(&metadata) => {
            Err(unusable(path, BinaryError::NotExecutable))
        }
        Ok(_) => Ok(path),
        Err(err) => Err(unusable(path, BinaryError::System(err))),
    }
}

#[cfg(unix)]
fn may_be_executed(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn may_be_executed(_: &std::fs::Metadata) -> bool {
    true
}

/// The two processes and their files. The fields drop in order: the server first, because it logs
/// errors without its database.
#[derive(Debug)]
pub(super) struct Binaries {
    kube_apiserver: Process,
    etcd: Process,
    folder: Folder,
    stop_timeout: Duration,
}

impl Binaries {
    /// Stops both and removes their files.
    pub(super) async fn stop(self) -> Result<(), ClusterError> {
        let Self {
            kube_apiserver,
            etcd,
            mut folder,
            stop_timeout,
        } = self;
        let ended = kube_apiserver.stop(stop_timeout).await;
        let ended = ended.and(etcd.stop(stop_timeout).await);
        if ended.is_err() {
            folder.keep_logs();
        }
        ended
    }

    /// Returns the folder of the process logs.
    pub(super) fn logs(&self) -> &Path {
        self.folder.logs()
    }
}

/// Starts both and waits until the API server is ready.
pub(super) async fn start(assets: &Assets) -> Result<(Config, Binaries), ClusterError> {
    let mut attempt = 1;
    loop {
        match try_start(assets).await? {
            Ok(started) => return Ok(started),
            Err(failure) if failure.port_taken && attempt < ATTEMPTS_MAX => {
                tracing::info!(
                    attempt,
                    "retrying with other ports: another process took a port"
                );
                attempt += 1;
            }
            Err(mut failure) => {
                failure.folder.keep_logs();
                return Err(failure.error);
            }
        }
    }
}

/// A failed start, with the logs that may explain it.
struct Failure {
    error: ClusterError,
    port_taken: bool,
    folder: Folder,
}

async fn try_start(assets: &Assets) -> Result<Result<(Config, Binaries), Failure>, ClusterError> {
    let folder = Folder::create()?;
    let tls = TlsMaterial::generate()?;
    let files = folder.write(&tls)?;
    let [port, etcd_port] = free_ports()?;
    let mut etcd = Process::start(
        ETCD,
        &assets.etcd,
        &flags::of_etcd(etcd_port, &files),
        folder.logs().join("etcd.log"),
    )?;
    let mut arguments = flags::of_kube_apiserver(port, etcd_port, &files);
    arguments.extend(assets.flags.iter().cloned());
    let log = folder.logs().join("kube-apiserver.log");
    let mut server = Process::start(KUBE_APISERVER, &assets.kube_apiserver, &arguments, log)?;
    let config = config(port, &tls).await?;
    let ready = until_ready(&config, [&mut etcd, &mut server], assets.start_timeout).await;
    if let Err((error, output)) = ready {
        // The processes end here, before their logs are read.
        drop((server, etcd));
        return Ok(Err(Failure {
            error,
            port_taken: output.contains(PORT_TAKEN),
            folder,
        }));
    }
    let binaries = Binaries {
        kube_apiserver: server,
        etcd,
        folder,
        stop_timeout: assets.stop_timeout,
    };
    Ok(Ok((config, binaries)))
}

/// Returns distinct free loopback ports.
fn free_ports<const N: usize>() -> Result<[u16; N], ClusterError> {
    let failed = |source| ClusterError::Prepare {
        action: "looking for a free port".to_owned(),
        source,
    };
    let mut ports = [0; N];
    let mut listeners = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        *port = listener.local_addr().map_err(failed)?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

/// Returns the administrator's client configuration.
async fn config(port: u16, tls: &TlsMaterial) -> Result<Config, ClusterError> {
    let url = format!("https://127.0.0.1:{port}");
    let credential = Credential::Certificate(&tls.admin);
    let text = kubeconfig(&url, &tls.ca_pem, "admin", credential).to_string();
    let failed = |err| ClusterError::Unreachable {
        url: url.clone(),
        source: ConnectError::Kubeconfig(Box::new(err)),
    };
    let kubeconfig = Kubeconfig::from_yaml(&text).map_err(failed)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(failed)?;
    // A proxy can't reach our loopback address.
    config.proxy_url = None;
    Ok(config)
}

/// Waits until the API server is ready and has created the namespace `default`. A failure includes
/// the log of the failed process.
async fn until_ready(
    config: &Config,
    processes: [&mut Process; 2],
    bound: Duration,
) -> Result<(), (ClusterError, String)> {
    let [etcd, server] = processes;
    let mut once = config.clone();
    once.default_retry = false;
    let client = Client::try_from(once).map_err(|source| {
        let user = "the administrator".to_owned();
        (ClusterError::Client { user, source }, String::new())
    })?;
    let deadline = Instant::now() + bound;
    let mut paths = ["/readyz", "/api/v1/namespaces/default"].iter().peekable();
    while let Some(path) = paths.peek() {
        for process in [&mut *etcd, &mut *server] {
            if let Some(status) = process.ended() {
                let output = process.output();
                return Err((exited(process, status, &output), output));
            }
        }
        let source = match request_within(RESPONSE_MAX, &client, path).await {
            Ok(()) => {
                paths.next();
                continue;
            }
            Err(error) => error,
        };
        if Instant::now() >= deadline {
            let error = ClusterError::NotReady {
                timeout: bound,
                source,
                log: server.log().to_owned(),
            };
            return Err((error, server.output()));
        }
        sleep(POLL).await;
    }
    Ok(())
}

fn exited(process: &Process, status: std::process::ExitStatus, output: &str) -> ClusterError {
    let last = output.lines().rev().find(|line| !line.trim().is_empty());
    ClusterError::Exited {
        program: process.program(),
        status,
        last: last.unwrap_or_default().trim().to_owned(),
        log: process.log().to_owned(),
    }
}
