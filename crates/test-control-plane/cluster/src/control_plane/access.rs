//! Who clients are: services and clients that act as a user, kubeconfigs, tokens.

use std::path::Path;

use http::Method;
use kube_test_control_plane_server::auth::Identity;
use kube_test_control_plane_server::certificates::CertificateError;
use kube_test_control_plane_server::service_as::ServiceAs;
use serde_json::{Value, json};

use super::{Endpoint, TestControlPlane};
use crate::kubeconfig::{self, Credential, WriteKubeconfigError};

/// The user agent of requests that the control plane makes for the test.
const AGENT: &str = "test-control-plane/access";

/// A client can't be given access.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// There is no port for a kubeconfig to name.
    #[error("the control plane has no port: it was not told to listen")]
    NoPort,
    /// The certificate can't be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The file can't be written.
    #[error(transparent)]
    Write(#[from] WriteKubeconfigError),
    /// The server makes no token for the service account.
    #[error("requesting a token of the service account {namespace}/{name}: {message}")]
    Token {
        /// The account's namespace.
        namespace: String,
        /// The account's name.
        name: String,
        /// What the server answers.
        message: String,
    },
}

impl TestControlPlane {
    /// The API server as a service whose requests are those of `identity`, who may do what its roles
    /// allow: to run a whole test with nothing but the role that a program ships with.
    pub fn service_as(&self, identity: Identity) -> ServiceAs {
        ServiceAs::new(self.service(), identity)
    }

    /// As [`client`](Self::client), for another user.
    #[cfg(feature = "client")]
    pub fn client_as(&self, identity: Identity) -> kube::Client {
        kube::Client::new(self.service_as(identity), "default")
    }

    /// The administrator's kubeconfig; none if there is no port.
    pub fn kubeconfig(&self) -> Option<Value> {
        let Endpoint { tls, .. } = self.endpoint.as_ref()?;
        let credential = Credential::Certificate(&tls.admin);
        let url = self.url()?;
        Some(kubeconfig::kubeconfig(
            &url,
            &tls.ca_pem,
            "admin",
            credential,
        ))
    }

    /// A user's kubeconfig, with a client certificate, or with a token for a user of whom a
    /// certificate can't tell all: one with several groups or with extra values, such as a service
    /// account.
    ///
    /// # Errors
    ///
    /// There is no port, or no certificate can be made.
    pub fn kubeconfig_for(&self, identity: &Identity) -> Result<Value, AccessError> {
        let Endpoint { tls, .. } = self.endpoint.as_ref().ok_or(AccessError::NoPort)?;
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

    /// A kubeconfig with a bearer token: one of [`issue_token`](Self::issue_token), of
    /// [`service_account_token`](Self::service_account_token), or one that was listed at the start.
    ///
    /// # Errors
    ///
    /// There is no port.
    pub fn kubeconfig_with_token(&self, user: &str, token: &str) -> Result<Value, AccessError> {
        let Endpoint { tls, .. } = self.endpoint.as_ref().ok_or(AccessError::NoPort)?;
        let url = self.url().ok_or(AccessError::NoPort)?;
        let credential = Credential::Token(token);
        Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
    }

    /// A new bearer token that shows a user, as long as the control plane runs.
    pub fn issue_token(&self, identity: &Identity) -> String {
        self.server.issue_token(identity)
    }

    /// A token of a service account that exists, as `kubectl create token` makes it: it counts for
    /// an hour.
    ///
    /// # Errors
    ///
    /// There is no such account.
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

    /// Writes the administrator's kubeconfig to a file, all at once; nothing if there is no port.
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

    /// Writes a user's kubeconfig to a file, all at once: see
    /// [`kubeconfig_for`](Self::kubeconfig_for).
    ///
    /// # Errors
    ///
    /// There is no port, no certificate can be made, or the file can't be written.
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
