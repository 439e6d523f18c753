//! Errors of access for clients.

use kube_test_control_plane_server::certificates::CertificateError;

use crate::kubeconfig::WriteKubeconfigError;

/// A reason why a client can't get access.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The kubeconfig needs a port, but there is none.
    #[error("the control plane has no port: listening is off")]
    NoPort,
    /// Generating the certificate failed.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The file can't be written.
    #[error(transparent)]
    Write(#[from] WriteKubeconfigError),
    /// The server rejects the token request.
    #[error("requesting a token of the service account {namespace}/{name}: {message}")]
    Token {
        /// The account's namespace.
        namespace: String,
        /// The account's name.
        name: String,
        /// The server's message.
        message: String,
    },
}
