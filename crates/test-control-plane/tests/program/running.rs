//! A running program, and clients of it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::Value;

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kube-test-control-plane"))
}

/// A running program that ends with the test.
pub(crate) struct Running {
    child: Child,
    pub(crate) url: String,
}

impl Running {
    /// Starts the program and waits for its readiness line.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = program().args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.trim().strip_prefix("ready ").unwrap().to_owned();
        Self { child, url }
    }

    pub(crate) fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }

    /// Ends the program with a signal and checks its exit.
    pub(crate) fn end(mut self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a client from a kubeconfig after a change to it.
pub(crate) async fn client(kubeconfig: &Path, change: impl FnOnce(&mut Value)) -> Client {
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
    change(&mut kubeconfig);
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.to_string()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Reads a path.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Value, kube::Error> {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client.request(request).await
}
