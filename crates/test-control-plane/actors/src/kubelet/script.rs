//! Scripts of containers as data: the lines they log, and the results of commands.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube_test_control_plane_server::containers::Stdio;
use serde::{Deserialize, Serialize};
use tokio::io::DuplexStream;

use crate::matcher::Pattern;
use kube_test_control_plane_api::setters;
use kube_test_control_plane_server::faults::Delay;

/// A line that a container logs in each of its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct LogLine {
    /// Time from the start of the container.
    pub after: Delay,
    /// The text, without a line feed.
    pub text: String,
    /// Name of the container; every container of the pod if `None`.
    pub container: Option<String>,
}

impl LogLine {
    /// Creates a line that every container logs when it starts.
    pub fn new(text: impl Into<String>) -> Self {
        Self::default().text(text)
    }

    setters! {
        /// Sets the time from the start of the container.
        after: into Delay,
        /// Sets the text, without a line feed.
        text: into String,
        /// Sets the name of the container.
        container: into String,
    }
}

/// The result of a command that a client executes in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ScriptedCommand {
    /// The command's words, joined by blanks; every command if `None`.
    pub command: Option<Pattern>,
    /// Name of the container; every container of the pod if `None`.
    pub container: Option<String>,
    /// Time until the result.
    pub delay: Delay,
    /// The text on its standard output.
    pub stdout: String,
    /// The text on its standard error.
    pub stderr: String,
    /// Its exit code.
    pub exit_code: i32,
}

impl ScriptedCommand {
    setters! {
        /// Sets the command's words, joined by blanks.
        command: into Pattern,
        /// Sets the name of the container.
        container: into String,
        /// Sets the time until the result.
        delay: into Delay,
        /// Sets the text on the standard output.
        stdout: into String,
        /// Sets the text on the standard error.
        stderr: into String,
        /// Sets the exit code.
        exit_code: i32,
    }

    /// Reports whether this is the result of a command in a container.
    pub(super) fn answers(&self, container: &str, command: &[String]) -> bool {
        let is_meant = |name: &String| name == container;
        self.container.as_ref().is_none_or(is_meant)
            && self
                .command
                .as_ref()
                .is_none_or(|pattern| pattern.matches(&command.join(" ")))
    }
}

/// The program that serves a port which clients forward. As under inetd, each connection runs it
/// once more: the connection is its input and its output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ScriptedPort {
    /// The port.
    pub port: u16,
    /// Name of the container that runs the program; the first main container if `None`.
    pub container: Option<String>,
    /// The program's name and arguments, such as `["sh", "-c", "echo PONG"]`.
    pub command: Vec<String>,
}

impl ScriptedPort {
    setters! {
        /// Sets the port.
        port: u16,
        /// Sets the name of the container that runs the program.
        container: into String,
        /// Sets the program's name and arguments.
        command: each into String,
    }
}

/// A container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerName {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
}

/// A test's program: serves a client with its streams, and returns an exit code.
pub type Program = Box<dyn FnOnce(Stdio) -> BoxFuture<'static, i32> + Send>;

/// A test's server: serves a connection to a port.
pub type PortServer = Box<dyn FnOnce(DuplexStream) -> BoxFuture<'static, ()> + Send>;

/// Makes a [`Program`] of a closure.
pub fn program<F>(serve: impl FnOnce(Stdio) -> F + Send + 'static) -> Program
where
    F: Future<Output = i32> + Send + 'static,
{
    Box::new(move |stdio| Box::pin(serve(stdio)))
}

/// Makes a [`PortServer`] of a closure.
pub fn port_server<F>(serve: impl FnOnce(DuplexStream) -> F + Send + 'static) -> PortServer
where
    F: Future<Output = ()> + Send + 'static,
{
    Box::new(move |connection| Box::pin(serve(connection)))
}

/// Chooses a program for a command; `None` leaves it to the script and the shell.
pub type CommandHandler = dyn Fn(&ContainerName, &[String]) -> Option<Program> + Send + Sync;

/// Chooses a server for a port of a pod, by namespace and name; `None` leaves it to the default.
pub type PortHandler = dyn Fn(&str, &str, u16) -> Option<PortServer> + Send + Sync;

/// The closures of a test that respond for containers.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Handlers {
    /// Chooses programs for commands.
    pub command: Option<Arc<CommandHandler>>,
    /// Chooses servers for ports.
    pub port: Option<Arc<PortHandler>>,
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers")
            .field("command", &self.command.as_ref().map(|_| "…"))
            .field("port", &self.port.as_ref().map(|_| "…"))
            .finish()
    }
}
