//! The files of the processes: certificates, data, logs.

use std::io::Write;
use std::path::{Path, PathBuf};

use kube_test_control_plane_server::certificates::{CertificateError, TlsMaterial};
use rcgen::KeyPair;
use tempfile::TempDir;

use crate::cluster::error::ClusterError;

/// Two folders that are removed at the end. The logs folder is kept if the processes or the test
/// fail. The folder of keys and data is always removed.
#[derive(Debug)]
pub(super) struct Folder {
    work: TempDir,
    logs: TempDir,
}

/// The paths of the files.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) etcd: PathBuf,
    pub(super) cert_dir: PathBuf,
    pub(super) server_cert: PathBuf,
    pub(super) server_key: PathBuf,
    pub(super) client_ca: PathBuf,
    pub(super) account_key: PathBuf,
    pub(super) account_public_key: PathBuf,
}

impl Folder {
    /// Creates both folders, readable only by their owner.
    pub(super) fn create() -> Result<Self, ClusterError> {
        let make = |what: &str| {
            let prefix = format!("test-control-plane-{what}-");
            let made = tempfile::Builder::new().prefix(&prefix).tempdir();
            made.map_err(|source| ClusterError::Prepare {
                action: format!("creating a folder for the {what} of the control plane"),
                source,
            })
        };
        Ok(Self {
            work: make("files")?,
            logs: make("logs")?,
        })
    }

    /// Returns the folder of the logs.
    pub(super) fn logs(&self) -> &Path {
        self.logs.path()
    }

    /// Keeps the logs at the end.
    pub(super) fn keep_logs(&mut self) {
        self.logs.disable_cleanup(true);
    }

    /// Writes the certificates and keys and returns the paths of all files.
    pub(super) fn write(&self, tls: &TlsMaterial) -> Result<Files, ClusterError> {
        let account = KeyPair::generate().map_err(CertificateError::from)?;
        let write = |name: &str, text: &str| {
            let path = self.work.path().join(name);
            let written =
                std::fs::File::create(&path).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|source| ClusterError::Prepare {
                action: format!("writing {}", path.display()),
                source,
            })?;
            Ok::<PathBuf, ClusterError>(path)
        };
        Ok(Files {
            etcd: self.work.path().join("etcd"),
            cert_dir: self.work.path().join("certificates"),
            server_cert: write("apiserver.crt", &tls.server_pem)?,
            server_key: write("apiserver.key", &tls.server_key_pem)?,
            client_ca: write("client-ca.crt", &tls.ca_pem)?,
            account_key: write("service-accounts.key", &account.serialize_pem())?,
            account_public_key: write("service-accounts.pub", &account.public_key_pem())?,
        })
    }
}

impl Drop for Folder {
    #[expect(
        clippy::print_stderr,
        reason = "the logs help to debug the failed test"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep_logs();
            eprintln!(
                "the logs of kube-apiserver and etcd are kept in {}",
                self.logs().display()
            );
        }
    }
}
