//! The file with which clients find the control plane and show who they are.

use std::io::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::tls::TlsMaterial;

/// A kubeconfig that couldn't be written.
#[derive(Debug, thiserror::Error)]
#[error("writing the kubeconfig {path}: {reason}")]
pub struct WriteKubeconfigError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: std::io::Error,
}

/// The kubeconfig of the administrator, as JSON, which is YAML too.
pub fn kubeconfig(url: &str, tls: &TlsMaterial) -> Value {
    let encode = |pem: &str| STANDARD.encode(pem);
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test-control-plane",
        "preferences": {},
        "clusters": [{
            "name": "test-control-plane",
            "cluster": {
                "server": url,
                "certificate-authority-data": encode(&tls.ca_pem),
            },
        }],
        "users": [{
            "name": "admin",
            "user": {
                "client-certificate-data": encode(&tls.client_pem),
                "client-key-data": encode(&tls.client_key_pem),
            },
        }],
        "contexts": [{
            "name": "test-control-plane",
            "context": {
                "cluster": "test-control-plane",
                "namespace": "default",
                "user": "admin",
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
