//! Kubeconfig files with the control plane's address and a client's credentials.

use std::io::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use kube_test_control_plane_server::certificates::ClientCertificate;

/// The name of the cluster and of the context.
const CLUSTER: &str = "test-control-plane";

/// A failure to write a kubeconfig.
#[derive(Debug, thiserror::Error)]
#[error("writing the kubeconfig {path}: {source}")]
#[non_exhaustive]
pub struct WriteKubeconfigError {
    /// The path of the file.
    pub path: PathBuf,
    /// The system's error.
    #[source]
    pub source: std::io::Error,
}

/// A client's credential.
#[derive(Clone, Copy, Debug)]
pub enum Credential<'a> {
    /// A client certificate.
    Certificate(&'a ClientCertificate),
    /// A bearer token.
    Token(&'a str),
}

/// Returns a kubeconfig for the server at `url` with the CA `ca_pem`, as JSON, which is also valid
/// YAML. Its only context uses the namespace `default`.
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

/// Writes a file atomically, readable only by its owner.
///
/// # Errors
///
/// The file can't be written.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), WriteKubeconfigError> {
    let error = |source| WriteKubeconfigError {
        path: path.to_owned(),
        source,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = write_private(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|source| {
        // The file may not exist. Report the first error.
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
