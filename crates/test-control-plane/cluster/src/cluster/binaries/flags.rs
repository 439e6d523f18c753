//! The flags of the real programs, as in envtest.

use super::folder::Files;

/// Returns the flags of etcd. Its data is temporary, so it skips syncing to disk.
pub(super) fn of_etcd(port: u16, files: &Files) -> Vec<String> {
    let url = format!("http://127.0.0.1:{port}");
    vec![
        format!("--data-dir={}", files.etcd.display()),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        "--unsafe-no-fsync".to_owned(),
    ]
}

/// Returns the flags of kube-apiserver. Service account admission is off, because no controller
/// creates the accounts.
pub(super) fn of_kube_apiserver(port: u16, etcd_port: u16, files: &Files) -> Vec<String> {
    let file = |flag: &str, path: &std::path::Path| format!("--{flag}={}", path.display());
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        file("cert-dir", &files.cert_dir),
        file("tls-cert-file", &files.server_cert),
        file("tls-private-key-file", &files.server_key),
        file("client-ca-file", &files.client_ca),
        format!("--service-account-issuer=https://127.0.0.1:{port}/"),
        file("service-account-key-file", &files.account_public_key),
        file("service-account-signing-key-file", &files.account_key),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--allow-privileged=true".to_owned(),
    ]
}
