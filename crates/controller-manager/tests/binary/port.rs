//! Tests of the program's own port: public health, and nothing else for anonymous users.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::OFF;
use crate::api::{Answer, FakeApi};
use crate::program::{PATIENCE, Program, run, start};

/// An address with a free port.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Starts the program with its certificate in a folder, and waits until it serves its port.
fn serving(api: &FakeApi, folder: &Path, further: &[&str]) -> (Program, SocketAddr) {
    let address = free_address();
    let port = format!("--secure-port={}", address.port());
    let certificates = format!("--cert-dir={}", folder.display());
    let master = format!("--master={}", api.address());
    let own = [
        OFF,
        "--bind-address=127.0.0.1",
        &master,
        &port,
        &certificates,
    ];
    let mut program = start(&[&own, further].concat(), None);
    program.wait_for_line("serving health, metrics and configuration over TLS");
    (program, address)
}

/// Sends a request to the program, whose certificate is in the file; returns the code and the body.
fn ask(address: SocketAddr, certificate: &Path, path: &str) -> (u16, String) {
    ask_with(address, certificate, path, None)
}

/// Sends a request with a client certificate.
fn ask_with(
    address: SocketAddr,
    certificate: &Path,
    path: &str,
    client: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> (u16, String) {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificate).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        Some((chain, key)) => config.with_client_auth_cert(vec![chain], key).unwrap(),
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}

#[test]
fn health_is_public_and_metrics_are_not() {
    let api = FakeApi::new(Answer::empty_list_or_watch);
    let folder = tempfile::tempdir().unwrap();
    let (mut program, address) = serving(&api, folder.path(), &[]);
    let certificate = folder.path().join("kube-controller-manager.crt");
    let ask = |path| ask(address, &certificate, path);
    program.wait_for_line("ready: caches are filled");
    let expected = "[+]statefulset-controller ok\nhealthz check passed\n";
    assert_eq!(ask("/healthz?verbose"), (200, expected.to_owned()));
    assert_eq!(ask("/livez"), (200, "ok".to_owned()));
    let expected = "[+]statefulset-controller ok\n[+]informer-sync ok\n[+]shutdown ok\n\
                    readyz check passed\n";
    assert_eq!(ask("/readyz?verbose"), (200, expected.to_owned()));
    for path in ["/metrics", "/configz", "/flagz", "/nope"] {
        let (code, body) = ask(path);
        let message = format!("User \\\"system:anonymous\\\" cannot get path \\\"{path}\\\"");
        assert!(code == 403 && body.contains(&message), "{body}");
    }
    program.signal("TERM");
    let finished = program.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}

#[test]
fn program_becomes_ready_when_permissions_are_granted() {
    let is_granted = Arc::new(AtomicBool::new(false));
    let granted = Arc::clone(&is_granted);
    let api = FakeApi::new(move |request| {
        if is_granted.load(Ordering::Relaxed) {
            return Answer::empty_list_or_watch(request);
        }
        Answer::failure(
            403,
            "Forbidden",
            "x is forbidden: User \"u\" cannot list resource \"x\"",
        )
    });
    let folder = tempfile::tempdir().unwrap();
    let (mut program, address) = serving(&api, folder.path(), &[]);
    let certificate = folder.path().join("kube-controller-manager.crt");
    let ask = |path| ask(address, &certificate, path);
    program.wait_for_line("permissions are missing, trying again");
    assert_eq!(ask("/livez").0, 200);
    let (code, body) = ask("/readyz?verbose");
    assert!(
        code == 500 && body.contains("[-]informer-sync failed"),
        "{body}"
    );
    granted.store(true, Ordering::Relaxed);
    program.wait_for_line("the API server grants the required access");
    program.wait_for_line("ready: caches are filled");
    assert_eq!(ask("/readyz").0, 200);
    program.signal("TERM");
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn readyz_fails_until_the_caches_are_filled() {
    let (listed, lists) = channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let api = FakeApi::new(move |request| {
        // The permissions check lists one object; this list fills the cache.
        let is_of_cache = request.query.contains("limit=500");
        if request.path == "/api/v1/pods" && is_of_cache && !request.is_watch() {
            listed.send(()).unwrap();
            let _ = released.lock().unwrap().recv_timeout(PATIENCE);
        }
        Answer::empty_list_or_watch(request)
    });
    let folder = tempfile::tempdir().unwrap();
    let (mut program, address) = serving(&api, folder.path(), &[]);
    let certificate = folder.path().join("kube-controller-manager.crt");
    lists.recv_timeout(PATIENCE).unwrap();
    let not_ready = "[+]statefulset-controller ok\n[-]informer-sync failed: reason withheld\n\
                     [+]shutdown ok\nreadyz check failed\n";
    let answer = ask(address, &certificate, "/readyz?verbose");
    assert_eq!(answer, (500, not_ready.to_owned()));
    drop(release);
    program.wait_for_line("ready: caches are filled");
    assert_eq!(ask(address, &certificate, "/readyz").0, 200);
}

#[test]
fn taken_port_is_reported_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let port = format!("--secure-port={}", address.port());
    let finished = run(&[
        OFF,
        "--master=http://127.0.0.1:1",
        "--bind-address=127.0.0.1",
        &port,
    ]);
    let expected = format!(
        "Error: open the secure port: cannot listen on {address}: Address already in use \
         (os error 98); another program has the port: choose another --secure-port, or 0 for \
         none\n"
    );
    assert_eq!((finished.code, finished.stderr), (Some(1), expected));
}

/// A certificate for `localhost` and its key, as PEM.
fn self_signed() -> (String, String) {
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

#[test]
fn client_certificate_authenticates_its_user() {
    let api = FakeApi::new(Answer::empty_list_or_watch);
    let folder = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.path().join("ca"), ca.pem()).unwrap();
    let client_ca = format!("--client-ca-file={}/ca", folder.path().display());
    let (program, address) = serving(&api, folder.path(), &[&client_ca]);

    let mut params = CertificateParams::new(Vec::new()).unwrap();
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, "ops");
    name.push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let chain = params.signed_by(&key, &ca).unwrap().der().clone();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let certificate = folder.path().join("kube-controller-manager.crt");
    let metrics = ask_with(address, &certificate, "/metrics", Some((chain, key)));
    assert_eq!(metrics.0, 200, "{}", metrics.1);
    program.signal("TERM");
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn changed_certificates_apply_without_restart() {
    let api = FakeApi::new(Answer::empty_list_or_watch);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let client_ca = format!("--client-ca-file={}", file("ca").display());
    std::fs::write(file("ca"), self_signed().0).unwrap();
    let (mut program, address) = serving(&api, folder.path(), &[&client_ca]);
    let (chain, key) = self_signed();
    std::fs::write(file("kube-controller-manager.crt"), chain).unwrap();
    std::fs::write(file("kube-controller-manager.key"), key).unwrap();
    program.wait_for_line("the serving certificate was reloaded");
    // Only the new certificate is trusted.
    let certificate = file("kube-controller-manager.crt");
    assert_eq!(ask(address, &certificate, "/livez").0, 200);
    std::fs::write(file("ca"), self_signed().0).unwrap();
    program.wait_for_line("the client CA was reloaded");
    program.signal("TERM");
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn invalid_certificates_are_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let port = format!("--secure-port={}", free_address().port());
    let certificate = folder.path().join("a.crt");
    std::fs::write(&certificate, "nothing").unwrap();
    let name = certificate.display();
    let files = [
        format!("--tls-cert-file={name}"),
        format!("--tls-private-key-file={name}"),
    ];
    let finished = run(&[OFF, "--bind-address=127.0.0.1", &port, &files[0], &files[1]]);
    let expected = format!(
        "Error: load the serving certificate from {name} and {name}: the certificate file: \
         it contains no certificate\n"
    );
    assert_eq!((finished.code, finished.stderr), (Some(1), expected));
}
