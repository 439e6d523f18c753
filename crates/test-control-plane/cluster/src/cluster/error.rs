//! What goes wrong with clusters to test against.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use kube_test_control_plane_server::certificates::CertificateError;

use crate::control_plane::StartError;

/// A cluster can't be started, used or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A variable of the environment has a value that means nothing.
    #[error("{variable} is {value:?}: it must be {wanted}")]
    Setting {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        wanted: &'static str,
    },
    /// A binary can't be used.
    #[error("{path} of KUBEBUILDER_ASSETS can't be used: {reason}", path = path.display())]
    Binary {
        /// The binary, or the folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The embedded control plane can't be started.
    #[error(transparent)]
    Embedded(#[from] StartError),
    /// The certificates of the real binaries can't be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// What the processes need can't be prepared.
    #[error("{action}: {reason}")]
    Prepare {
        /// What was being done, to which file or port.
        action: String,
        /// Why it failed.
        reason: std::io::Error,
    },
    /// A process ended before the API server was ready.
    #[error(
        "{program} ended before the API server was ready ({status}); its last words: {last:?}; \
         the log is kept in {log}", log = log.display()
    )]
    Exited {
        /// The program.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last line of its log.
        last: String,
        /// Its log.
        log: PathBuf,
    },
    /// The API server was not ready in time.
    #[error(
        "kube-apiserver was not ready within {timeout:?}: {last}; the log is kept in {log}",
        log = log.display()
    )]
    NotReady {
        /// How long was waited.
        timeout: Duration,
        /// What the last question was answered.
        last: String,
        /// Its log.
        log: PathBuf,
    },
    /// A process had to be killed at the end.
    #[error(
        "{program} did not end within {timeout:?} of being told to and was killed; the log is \
         kept in {log}", log = log.display()
    )]
    Killed {
        /// The program.
        program: &'static str,
        /// How long was waited.
        timeout: Duration,
        /// Its log.
        log: PathBuf,
    },
    /// The existing cluster can't be used.
    #[error("the existing cluster {url} can't be used: {reason}")]
    Unreachable {
        /// Its URL; what stands in its place if no kubeconfig was found.
        url: String,
        /// Why.
        reason: String,
    },
    /// The actors can't be started.
    #[error("starting the actors: {reason}")]
    Actors {
        /// Why the server doesn't tell of its objects.
        reason: String,
    },
    /// A namespace can't be made.
    #[error("making a namespace {prefix}-…: {reason}")]
    Namespace {
        /// How its name was to start.
        prefix: String,
        /// Why it can't be made.
        reason: kube::Error,
    },
    /// A client can't be made.
    #[error("making a client for {user}: {reason}")]
    Client {
        /// Who the client is to be.
        user: String,
        /// Why it can't be made.
        reason: kube::Error,
    },
}

/// Something was wanted of the embedded control plane, but another one runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "faults, audit log, clock and store are those of the embedded control plane, but {backend} \
     was chosen: unset {variable} to run this"
)]
pub struct NotEmbedded {
    /// What runs instead.
    pub backend: &'static str,
    /// The variable of the environment that chose it.
    pub variable: &'static str,
}

/// An error with everything that caused it, in one line.
pub(super) fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        // Many errors repeat their cause.
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
