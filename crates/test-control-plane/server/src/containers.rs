//! Containers as the API server reaches them through the kubelets of their nodes: logs, processes
//! and ports.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use tokio::io::DuplexStream;
use tokio::sync::watch;

/// A pod and its node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodAddress {
    /// The name of the node.
    pub node: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
}

/// An error of a kubelet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct KubeletError {
    /// The HTTP status code; 502 if no kubelet responds.
    pub code: u16,
    /// The text of the response.
    pub message: String,
}

impl KubeletError {
    /// Creates the error of a kubelet.
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// The kubelets of all nodes.
pub trait Kubelets: fmt::Debug + Send + Sync {
    /// Finds a pod on its node.
    ///
    /// # Errors
    ///
    /// The node doesn't respond, or doesn't run the pod.
    fn find(&self, pod: PodAddress) -> BoxFuture<'_, Result<Arc<dyn NodePod>, KubeletError>>;
}

/// A pod on its node.
pub trait NodePod: Send + Sync {
    /// Returns the log of a container.
    ///
    /// # Errors
    ///
    /// The container has no such log.
    fn log(
        &self,
        container: &str,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, KubeletError>;

    /// Returns a new process in a container.
    ///
    /// # Errors
    ///
    /// The container doesn't run.
    fn exec(&self, container: &str, command: Vec<String>) -> Result<Process, KubeletError>;

    /// Returns the main process of a container.
    ///
    /// # Errors
    ///
    /// The container doesn't run.
    fn attach(&self, container: &str) -> Result<Process, KubeletError>;

    /// Connects to a port of the pod, until one side closes the connection. Its error is the text
    /// for the client.
    fn connect(
        &self,
        port: u16,
        connection: DuplexStream,
    ) -> BoxFuture<'static, Result<(), String>>;
}

/// A process that begins once it gets its streams.
pub type Process = Box<dyn FnOnce(Stdio) -> BoxFuture<'static, Result<(), Exit>> + Send>;

/// The end of a process that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Its exit code.
    Code(i32),
    /// The error that kept it from running.
    Failed(String),
}

/// The streams of a process, of which a client wants some.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Stdio {
    /// Standard input.
    pub stdin: Option<DuplexStream>,
    /// Standard output.
    pub stdout: Option<DuplexStream>,
    /// Standard error; a terminal has none.
    pub stderr: Option<DuplexStream>,
    /// The size of the terminal, if there is one.
    pub terminal: Option<watch::Receiver<TerminalSize>>,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct TerminalSize {
    /// Its columns.
    pub width: u16,
    /// Its rows.
    pub height: u16,
}

/// The part of a log that a client wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOptions {
    /// Waits for further lines until the container ends.
    pub follow: bool,
    /// Reads the log of the previous run.
    pub previous: bool,
    /// Begins each line with its time.
    pub timestamps: bool,
    /// Leaves out older lines.
    pub since: Option<Timestamp>,
    /// Leaves out all but the last lines.
    pub tail: Option<u64>,
    /// Limit in bytes.
    pub limit_bytes: Option<u64>,
}
