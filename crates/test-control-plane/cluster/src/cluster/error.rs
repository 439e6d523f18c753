//! Errors of test clusters.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use kube::config::{InferConfigError, KubeconfigError};
use kube_apimachinery::error_line::error_line;
use kube_test_control_plane_server::certificates::CertificateError;

use crate::control_plane::StartError;

/// A cluster can't be started, used or stopped.
///
/// The text of each error is one line, which includes its causes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// Reading the environment failed: a variable has an invalid value. Expected until the user
    /// corrects it.
    #[error("{variable} is {value:?}: it must be {desired}")]
    Setting {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        desired: &'static str,
    },
    /// Finding or starting a binary failed. Expected until the user corrects `KUBEBUILDER_ASSETS`.
    #[error("{path} of KUBEBUILDER_ASSETS can't be used: {source}", path = path.display())]
    Binary {
        /// The binary, or the folder.
        path: PathBuf,
        /// The reason.
        #[source]
        source: BinaryError,
    },
    /// Starting the embedded control plane failed. Expected if its port is taken.
    #[error(transparent)]
    Embedded(#[from] StartError),
    /// Generating the certificates of the real binaries failed. Never expected.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Preparing the processes failed. Expected only if the system has no space or no ports left.
    #[error("{action}: {source}")]
    Prepare {
        /// The failed action, with its file or port.
        action: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// A process exited before the API server was ready. Expected with invalid flags.
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
    /// Waiting for the API server took too long. Expected on a machine under load.
    #[error(
        "kube-apiserver was not ready within {timeout:?}: {source}; the log is kept in {log}",
        log = log.display()
    )]
    NotReady {
        /// The timeout.
        timeout: Duration,
        /// The result of the last readiness check.
        #[source]
        source: RequestError,
        /// The server's log.
        log: PathBuf,
    },
    /// A process had to be killed at the end. Never expected.
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
    /// Connecting to a cluster failed. Expected while it is down, or if it rejects the credentials.
    #[error("the existing cluster {url} can't be used: {source}")]
    Unreachable {
        /// The cluster's URL, or a placeholder if no kubeconfig was found.
        url: String,
        /// The reason.
        #[source]
        source: ConnectError,
    },
    /// Starting the actors failed, at their first list. Expected if the user lacks a permission.
    #[error("starting the actors: {}", text(.source))]
    Actors {
        /// The error of the request.
        #[source]
        source: kube::Error,
    },
    /// Creating a namespace failed. Expected if the user lacks the permission.
    #[error("creating a namespace {prefix}-…: {}", text(.source))]
    Namespace {
        /// The prefix of its name.
        prefix: String,
        /// The error of the request.
        #[source]
        source: kube::Error,
    },
    /// Creating a client failed. Never expected: a client with this configuration exists.
    #[error("creating a client for {user}: {}", text(.source))]
    Client {
        /// The client's user.
        user: String,
        /// The reason.
        #[source]
        source: kube::Error,
    },
}

/// The reason that a binary can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BinaryError {
    /// There is no folder of this name.
    #[error("there is no such folder")]
    NoFolder,
    /// Something else than a folder has the name.
    #[error("it is not a folder")]
    NotAFolder,
    /// Something else than a file has the name.
    #[error("it is not a file")]
    NotAFile,
    /// The file has no permission to be executed.
    #[error("it is not executable")]
    NotExecutable,
    /// The system can't find or start the program.
    #[error("{0}")]
    System(#[source] std::io::Error),
}

/// The reason that a client gets no response from a cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Finding a kubeconfig failed.
    #[error("{}", text(.0.as_ref()))]
    Infer(#[source] Box<InferConfigError>),
    /// Reading a kubeconfig failed.
    #[error("{}", text(.0.as_ref()))]
    Kubeconfig(#[source] Box<KubeconfigError>),
    /// Setting up the connection failed.
    #[error("{}", text(.0.as_ref()))]
    Client(#[source] Box<kube::Error>),
    /// The first request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// The reason that a request got no usable response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server can't be reached, or responded with a failure.
    #[error("{}", text(.0.as_ref()))]
    Failed(#[source] Box<kube::Error>),
    /// The server did not respond in time.
    #[error("no response to {path} within {timeout:?}")]
    Timeout {
        /// The path of the request.
        path: String,
        /// The timeout.
        timeout: Duration,
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
fn text(error: &(dyn StdError + 'static)) -> String {
    // The texts of these errors contain debug output.
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        return one_line(&status.message);
    }
    error_line(error)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of an error and its causes, outermost first.
    fn chain(error: &(dyn StdError + 'static)) -> Vec<String> {
        let errors = std::iter::successors(Some(error), |&error| error.source());
        errors.map(ToString::to_string).collect()
    }

    fn io() -> std::io::Error {
        std::io::Error::other("disk full")
    }

    fn rejected() -> kube::Error {
        let mut status = kube::core::Status::failure("pods is forbidden", "Forbidden");
        status.code = 403;
        kube::Error::Api(Box::new(status))
    }

    #[test]
    fn each_text_contains_its_causes_once() {
        let path = PathBuf::from("/bin/etcd");
        let errors: [(ClusterError, &str); 7] = [
            (
                ClusterError::Binary {
                    path: path.clone(),
                    source: BinaryError::System(io()),
                },
                "/bin/etcd of KUBEBUILDER_ASSETS can't be used: disk full",
            ),
            (
                ClusterError::Prepare {
                    action: "writing f".to_owned(),
                    source: io(),
                },
                "writing f: disk full",
            ),
            (
                ClusterError::NotReady {
                    timeout: Duration::from_secs(2),
                    source: RequestError::Failed(Box::new(rejected())),
                    log: path,
                },
                "kube-apiserver was not ready within 2s: pods is forbidden; the log is kept in \
                 /bin/etcd",
            ),
            (
                ClusterError::Unreachable {
                    url: "https://x/".to_owned(),
                    source: ConnectError::Request(RequestError::Timeout {
                        path: "/api".to_owned(),
                        timeout: Duration::from_secs(1),
                    }),
                },
                "the existing cluster https://x/ can't be used: no response to /api within 1s",
            ),
            (
                ClusterError::Actors { source: rejected() },
                "starting the actors: pods is forbidden",
            ),
            (
                ClusterError::Namespace {
                    prefix: "t".to_owned(),
                    source: rejected(),
                },
                "creating a namespace t-…: pods is forbidden",
            ),
            (
                ClusterError::Client {
                    user: "admin".to_owned(),
                    source: kube::Error::ReadEvents(io()),
                },
                "creating a client for admin: Error reading events stream: disk full",
            ),
        ];
        for (error, expected) in errors {
            let chain = chain(&error);
            assert_eq!(chain[0], expected);
            assert!(chain.len() > 1, "{expected}: the source is missing");
        }
    }
}
