//! Errors of test clusters.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use kube_test_control_plane_server::certificates::CertificateError;

use crate::control_plane::StartError;

/// A cluster can't be started, used or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// An environment variable has an invalid value.
    #[error("{variable} is {value:?}: it must be {wanted}")]
    Setting {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        wanted: &'static str,
    },
    /// A binary is unusable.
    #[error("{path} of KUBEBUILDER_ASSETS can't be used: {reason}", path = path.display())]
    Binary {
        /// The binary, or the folder.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The embedded control plane failed to start.
    #[error(transparent)]
    Embedded(#[from] StartError),
    /// Generating the certificates of the real binaries failed.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Preparing the processes failed.
    #[error("{action}: {reason}")]
    Prepare {
        /// The failed action, with its file or port.
        action: String,
        /// The I/O error.
        reason: std::io::Error,
    },
    /// A process exited before the API server was ready.
    #[error(
        "{program} ended before the API server was ready ({status}); last log line: {last:?}; \
         the log is kept in {log}", log = log.display()
    )]
    Exited {
        /// The program.
        program: &'static str,
        /// Its exit status.
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
        /// The timeout.
        timeout: Duration,
        /// The result of the last readiness check.
        last: String,
        /// The server's log.
        log: PathBuf,
    },
    /// A process had to be killed at the end.
    #[error(
        "{program} did not end within {timeout:?} and was killed; the log is \
         kept in {log}", log = log.display()
    )]
    Killed {
        /// The program.
        program: &'static str,
        /// The timeout.
        timeout: Duration,
        /// Its log.
        log: PathBuf,
    },
    /// The existing cluster is unusable.
    #[error("the existing cluster {url} can't be used: {reason}")]
    Unreachable {
        /// The cluster's URL, or a placeholder if no kubeconfig was found.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The actors failed to start.
    #[error("starting the actors: {reason}")]
    Actors {
        /// The error of their first list.
        reason: String,
    },
    /// A namespace can't be created.
    #[error("creating a namespace {prefix}-…: {reason}")]
    Namespace {
        /// The prefix of its name.
        prefix: String,
        /// The server's error.
        reason: kube::Error,
    },
    /// A client can't be created.
    #[error("creating a client for {user}: {reason}")]
    Client {
        /// The client's user.
        user: String,
        /// The reason.
        reason: kube::Error,
    },
}

/// A feature of the embedded control plane was requested from another backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "faults, audit log, clock and store need the embedded control plane, but {backend} \
     was chosen: unset {variable} to run this"
)]
#[non_exhaustive]
pub struct NotEmbedded {
    /// The running backend.
    pub backend: &'static str,
    /// The environment variable that selected it.
    pub variable: &'static str,
}

/// Formats an error and all its causes on one line.
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
