//! The file with which clients find the control plane and show who they are.

use std::io::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use kube_test_control_plane_server::certificates::ClientCertificate;

/// The name of the cluster and of the context.
const CLUSTER: &str = "test-control-plane";

/// A kubeconfig that couldn't be written.
#[derive(Debug, thiserror::Error)]
#[error("writing the kubeconfig {path}: {reason}")]
pub struct WriteKubeconfigError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: std::io::Error,
}

/// How a client shows who it is.
#[derive(Clone, Copy, Debug)]
pub enum Credential<'a> {
    /// By a certificate.
    Certificate(&'a ClientCertificate),
    /// By a bearer token.
    Token(&'a str),
}

/// A kubeconfig for the server at `url`, whose certificates are signed by `ca_pem`, as JSON, which
/// is YAML too. Its one context is for the namespace `default`.
pub fn kubeconfig(url: &str, ca_pem: &str, user: &str, credential: Credential<'_>) -> Value {
    let encode = |pem: &str| STANDARD.encode(pem);
    let shown = match credential {
        Credential::Certificate(certificate) => json!({
            "client-certificate-data": encode(&certificate.pem),
            "client-key-data": encode(&certificate.key_pem),
        }),
        Credential::Token(token) => json!({"token": token}),
    };
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CLUSTER,
        "preferences": {},
        "clusters": [{
            "name": CLUSTER,
            "cluster": {
                "server": url,
                "certificate-authority-data": encode(ca_pem),
            },
        }],
        "users": [{"name": user, "user": shown}],
        "contexts": [{
            "name": CLUSTER,
            "context": {
                "cluster": CLUSTER,
                "namespace": "default",
                "user": user,
            },
        }],
    })
}

/// Writes a file so that a reader sees all of it or nothing, readable by its owner only.
///
/// # Errors
///
/// The file can't be written.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), WriteKubeconfigError> {
    let error = |source| WriteKubeconfigError {
        path: path.to_owned(),
        reason: source,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = write_private(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|source| {
        // The file may not even exist; the first error is the one to tell.
        let _ = std::fs::remove_file(&temporary);
        error(source)
    })
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
