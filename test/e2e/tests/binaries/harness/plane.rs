//! The control plane on its own port, with controllers that use it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Api, Process, Programs};

/// Namespace of the service accounts with default roles.
const SYSTEM: &str = "kube-system";
/// Service account with the controller's default role.
const ACCOUNT: &str = "statefulset-controller";

/// A control plane that serves until dropped.
pub(crate) struct Plane {
    controller: PathBuf,
    kubeconfig: Value,
    controller_kubeconfig: PathBuf,
    pub(crate) api: Api,
    process: Process,
    folder: TempDir,
}

impl Plane {
    /// Starts one whose pods take this long to start, and again to become ready.
    pub(crate) fn start(programs: &Programs, pod_delay: &str) -> Self {
        let delays = ["--start-delay", pod_delay, "--ready-delay", pod_delay];
        Self::start_with(programs, &delays)
    }

    /// Starts one with these flags.
    pub(crate) fn start_with(programs: &Programs, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let mut command = Command::new(&programs.control_plane);
        if !flags.iter().any(|flag| flag.starts_with("--actors")) {
            // The tests run controllers as separate processes.
            command.arg("--actors=*,-statefulset-controller");
        }
        command
            .arg("--secure-port=0")
            .arg("--kubeconfig-out")
            .arg(&kubeconfig)
            .args(flags);
        let mut process = Process::start("control plane", &mut command);
        process.said("ready https://127.0.0.1:");
        let text = std::fs::read_to_string(&kubeconfig).unwrap();
        let mut plane = Self {
            api: Api::connect(&kubeconfig),
            controller: programs.controller.clone(),
            kubeconfig: serde_json::from_str(&text).unwrap(),
            controller_kubeconfig: PathBuf::new(),
            process,
            folder,
        };
        plane.create_account(SYSTEM, ACCOUNT);
        plane.controller_kubeconfig = plane.kubeconfig_of_account(SYSTEM, ACCOUNT);
        plane
    }

    /// Starts a controller with only the default role.
    pub(crate) fn controller(&self) -> Process {
        self.controller_with(&controller_arguments(&self.controller_kubeconfig))
    }

    /// Starts a controller with these flags.
    pub(crate) fn controller_with(&self, flags: &[String]) -> Process {
        self.named_controller("controller", flags)
    }

    /// Starts a controller with these flags, under a name for messages.
    pub(crate) fn named_controller(&self, name: &str, flags: &[String]) -> Process {
        Process::start(name, Command::new(&self.controller).args(flags))
    }

    /// Next line on the control plane's standard output; `None` on timeout.
    pub(crate) fn next_line(&mut self, patience: Duration) -> Option<String> {
        self.process.next_line(patience)
    }

    /// Creates a service account.
    pub(crate) fn create_account(&self, namespace: &str, name: &str) {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let account = json!({"metadata": {"name": name}});
        self.api.post(&path, &account);
    }

    /// Token of a service account.
    pub(crate) fn token(&self, namespace: &str, name: &str) -> String {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let answer = self.api.post(&path, &json!({"spec": {}}));
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    /// Writes a kubeconfig with a token of a service account.
    pub(crate) fn kubeconfig_of_account(&self, namespace: &str, name: &str) -> PathBuf {
        self.kubeconfig_of(&json!({"token": self.token(namespace, name)}))
    }

    /// Starts a controller with a kubeconfig and additional flags.
    pub(crate) fn controller_of(&self, kubeconfig: &Path, further: &[&str]) -> Process {
        let further = further.iter().copied().map(str::to_owned);
        let flags: Vec<_> = controller_arguments(kubeconfig)
            .into_iter()
            .chain(further)
            .collect();
        self.controller_with(&flags)
    }

    /// Path of a kubeconfig with only the default role.
    pub(crate) fn controller_kubeconfig(&self) -> &Path {
        &self.controller_kubeconfig
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> &Value {
        &self.kubeconfig
    }

    /// Writes a changed copy of the kubeconfig with only the default role.
    pub(crate) fn kubeconfig_with(&self, change: impl FnOnce(&mut Value)) -> PathBuf {
        let text = std::fs::read_to_string(&self.controller_kubeconfig).unwrap();
        let mut kubeconfig = serde_json::from_str(&text).unwrap();
        change(&mut kubeconfig);
        self.write(&kubeconfig)
    }

    fn write(&self, kubeconfig: &Value) -> PathBuf {
        let mut file = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        file.write_all(kubeconfig.to_string().as_bytes()).unwrap();
        file.into_temp_path().keep().unwrap()
    }

    /// Writes a kubeconfig with these credentials.
    pub(crate) fn kubeconfig_of(&self, user: &Value) -> PathBuf {
        let mut kubeconfig = self.kubeconfig.clone();
        kubeconfig["users"][0]["user"] = user.clone();
        self.write(&kubeconfig)
    }
}

/// Arguments of a controller.
pub(crate) fn controller_arguments(kubeconfig: &Path) -> [String; 3] {
    [
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}
