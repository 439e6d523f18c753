//! A run of the shipped programs in which every counted event happens.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::programs::{self, ready, spawn};
use crate::remote::{Certificates, Remote};

/// Time limit for all events to happen.
const RUN_MAX: Duration = Duration::from_secs(90);
/// Interval between scrapes.
const POLL: Duration = Duration::from_millis(200);

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
/// User that every API server allows to hold the lease and to review scrapers, like
/// kube-controller-manager.
const USER: &str = "system:kube-controller-manager";

/// Faults: the first pod is rejected for a second, which causes a retry; one lease renewal fails,
/// which causes a read.
const FAULTS: &str = r#"{"requests": [
    {"match": {"verbs": ["create"], "resources": ["pods"]}, "when": {"limit": 1},
     "action": {"respond": {"tooManyRequests": {"retryAfterSeconds": 1}}}},
    {"match": {"verbs": ["update"], "resources": ["leases"]}, "when": {"skip": 1, "limit": 1},
     "action": {"respond": {"internalError": {"message": "boom"}}}}
]}"#;

/// Prefixes of lines that a scrape contains once all events have happened.
const HAPPENED: [&str; 9] = [
    "leader_election_master_status{name=\"kube-controller-manager\"} 1",
    "leader_election_slowpath_total{",
    "rest_client_request_retries_total{code=\"201\"",
    "rest_client_requests_total{code=\"200\"",
    "rest_client_response_size_bytes_count{",
    "statefulset_controller_statefulset_max_unavailable{pod_management_policy=\"OrderedReady\"",
    "statefulset_controller_statefulset_max_unavailable{pod_management_policy=\"Parallel\"",
    "statefulset_controller_statefulset_unavailable_replicas{",
    "workqueue_work_duration_seconds_count{",
];

/// Running programs, stopped on drop.
struct Run {
    folder: TempDir,
    cluster: Remote,
    controller: Remote,
    _children: [Child; 2],
}

/// Starts a control plane and the controller, creates two sets, and scrapes the controller.
///
/// # Errors
///
/// A program can't be built or started, or an event doesn't happen in time.
pub(super) async fn scrape() -> anyhow::Result<String> {
    let run = Run::start().await?;
    for policy in ["OrderedReady", "Parallel"] {
        let set = set(&policy.to_lowercase(), policy);
        run.cluster.write(Method::POST, SETS, &set).await?;
    }
    let end = Instant::now() + RUN_MAX;
    loop {
        // The controller may not be listening yet.
        let text = run.controller.text("/metrics").await;
        let missing = match &text {
            Ok(text) => missing(text).map(str::to_owned),
            Err(error) => Some(format!("{error:#}")),
        };
        match (missing, text) {
            (None, Ok(text)) => return Ok(text),
            (missing, _) if Instant::now() > end => bail!(
                "not shown after {} s: {}; the controller said:\n{}",
                RUN_MAX.as_secs(),
                missing.unwrap_or_default(),
                log(run.folder.path(), "controller.log"),
            ),
            _ => sleep(POLL).await,
        }
    }
}

/// First expected line that is missing.
fn missing(text: &str) -> Option<&'static str> {
    HAPPENED
        .into_iter()
        .find(|wanted| !text.lines().any(|line| line.starts_with(wanted)))
}

fn log(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

impl Run {
    async fn start() -> anyhow::Result<Self> {
        let programs = programs::build()?;
        let folder = tempfile::tempdir().context("make a folder")?;
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| {
            let path = path(name);
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            anyhow::Ok(path)
        };
        let token = uuid::Uuid::new_v4().to_string();
        let own_token = uuid::Uuid::new_v4().to_string();
        let lines = format!("{token},scraper,1,\"system:masters\"\n{own_token},{USER},2\n");
        let tokens = write("tokens", &lines)?;
        let faults = write("faults", FAULTS)?;
        let kubeconfig = path("kubeconfig");
        let mut command = Command::new(&programs.control_plane);
        command
            .arg("--actors=kubelet,scheduler,garbage-collector,namespace-controller")
            .arg("--feature-gates=MaxUnavailableStatefulSet=true")
            .arg("--token-auth-file")
            .arg(&tokens)
            .arg("--fault-plan-file")
            .arg(&faults)
            .arg("--kubeconfig-out")
            .arg(&kubeconfig)
            .stdout(Stdio::piped());
        let mut control_plane = spawn(&mut command, &path("control-plane.log"))?;
        let url = ready(&mut control_plane).await.with_context(|| {
            let log = log(folder.path(), "control-plane.log");
            format!("the control plane isn't ready: {log}")
        })?;
        let cluster = Remote::new(&url, &token, &Certificates::Unchecked)?;
        cluster.write(Method::POST, BINDINGS, &binding()).await?;
        let text = std::fs::read_to_string(&kubeconfig).context("read the kubeconfig")?;
        let mut own: Value = serde_json::from_str(&text).context("parse the kubeconfig")?;
        own["users"][0]["user"] = json!({"token": own_token});
        let own = write("own-kubeconfig", &own.to_string())?;
        let port = free_port()?;
        let mut command = Command::new(&programs.controller);
        command
            .arg("--feature-gates=MaxUnavailableStatefulSet=true")
            .arg("--leader-elect-lease-duration=3s")
            .arg("--leader-elect-renew-deadline=2s")
            .arg("--leader-elect-retry-period=200ms")
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--secure-port={port}"))
            .stdout(Stdio::null());
        for flag in ["", "authentication-", "authorization-"] {
            command.arg(format!("--{flag}kubeconfig")).arg(&own);
        }
        let controller = spawn(&mut command, &path("controller.log"))?;
        let serving = format!("https://127.0.0.1:{port}");
        Ok(Self {
            cluster,
            controller: Remote::new(&serving, &token, &Certificates::Unchecked)?,
            folder,
            _children: [control_plane, controller],
        })
    }
}

/// A currently free port.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    Ok(listener.local_addr()?.port())
}

/// Binds the default role to the controller's user.
fn binding() -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "metadata": {"name": "controller"},
        "roleRef": {
            "apiGroup": group, "kind": "ClusterRole",
            "name": "system:controller:statefulset-controller",
        },
        "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
    })
}

fn set(name: &str, policy: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "replicas": 2, "serviceName": name, "podManagementPolicy": policy,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}
