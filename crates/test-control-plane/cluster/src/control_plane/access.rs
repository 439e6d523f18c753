//! Client identities: services and clients that act as a user, kubeconfigs, tokens.

use std::path::Path;

use http::Method;
use kube_test_control_plane_server::auth::Identity;
use kube_test_control_plane_server::certificates::CertificateError;
use kube_test_control_plane_server::in_process::ServiceAs;
use serde_json::{Value, json};

use super::{Endpoint, TestControlPlane};
use crate::kubeconfig::{self, Credential, WriteKubeconfigError};

/// The user agent of the control plane's own requests.
const AGENT: &str = "test-control-plane/access";

/// A reason why a client can't get access.
#[derive(Debug, thiserror::Error)]
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

impl TestControlPlane {
    /// Returns the API server as a service that sends requests as `identity`, with the permissions
    /// of its roles. Use it to run a whole test with only the role that a program ships with.
    pub fn service_as(&self, identity: Identity) -> ServiceAs {
        ServiceAs::new(self.service(), identity)
    }

    /// As [`client`](Self::client), for another user.
    #[cfg(feature = "client")]
    pub fn client_as(&self, identity: Identity) -> kube::Client {
        kube::Client::new(self.service_as(identity), "default")
    }

    /// Returns the administrator's kubeconfig; `None` if there is no port.
    pub fn kubeconfig(&self) -> Option<Value> {
        let Endpoint { tls, .. } = self.endpoint.as_deref()?;
        let credential = Credential::Certificate(&tls.admin);
        let url = self.url()?;
        Some(kubeconfig::kubeconfig(
            &url,
            &tls.ca_pem,
            "admin",
            credential,
        ))
    }

    /// Returns a user's kubeconfig with a client certificate. A user with several groups or with
    /// extra values, such as a service account, gets a token instead, because a certificate can't
    /// carry them.
    ///
    /// # Errors
    ///
    /// There is no port, or generating the certificate failed.
    pub fn kubeconfig_for(&self, identity: &Identity) -> Result<Value, AccessError> {
        let Endpoint { tls, .. } = self.endpoint.as_deref().ok_or(AccessError::NoPort)?;
        let url = self.url().ok_or(AccessError::NoPort)?;
        let user = &identity.name;
        match tls.client(identity) {
            Ok(certificate) => {
                let credential = Credential::Certificate(&certificate);
                Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
            }
            Err(CertificateError::TooMuch(_)) => {
                let token = self.issue_token(identity);
                let credential = Credential::Token(&token);
                Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
            }
            Err(err) => Err(err.into()),
        }
    }

    /// Returns a kubeconfig with a bearer token, either from [`issue_token`](Self::issue_token) or
    /// [`service_account_token`](Self::service_account_token), or from the tokens configured at the
    /// start.
    ///
    /// # Errors
    ///
    /// There is no port.
    pub fn kubeconfig_with_token(&self, user: &str, token: &str) -> Result<Value, AccessError> {
        let Endpoint { tls, .. } = self.endpoint.as_deref().ok_or(AccessError::NoPort)?;
        let url = self.url().ok_or(AccessError::NoPort)?;
        let credential = Credential::Token(token);
        Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
    }

    /// Issues a bearer token for a user, valid until the control plane stops.
    pub fn issue_token(&self, identity: &Identity) -> String {
        self.server.issue_token(identity)
    }

    /// Requests a token of an existing service account, as `kubectl create token` does. It is valid
    /// for an hour.
    ///
    /// # Errors
    ///
    /// The service account does not exist.
    pub async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<String, AccessError> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let body = json!({"spec": {}});
        let (_, answer) = self
            .server
            .call_json(Method::POST, &path, AGENT, &body)
            .await;
        match answer.pointer("/status/token").and_then(Value::as_str) {
            Some(token) => Ok(token.to_owned()),
            None => Err(AccessError::Token {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                message: answer["message"].as_str().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Writes the administrator's kubeconfig to a file atomically; does nothing without a port.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), WriteKubeconfigError> {
        match self.kubeconfig() {
            Some(config) => kubeconfig::write_atomically(path, &format!("{config:#}\n")),
            None => Ok(()),
        }
    }

    /// Writes a user's kubeconfig to a file atomically: see
    /// [`kubeconfig_for`](Self::kubeconfig_for).
    ///
    /// # Errors
    ///
    /// There is no port, generating the certificate failed, or the file can't be written.
    pub fn write_kubeconfig_for(
        &self,
        identity: &Identity,
        path: &Path,
    ) -> Result<(), AccessError> {
        let config = self.kubeconfig_for(identity)?;
        kubeconfig::write_atomically(path, &format!("{config:#}\n"))?;
        Ok(())
    }
}
