//! Tests of certificate selection and creation.

use rustls::crypto::ring::default_provider;

use super::*;

fn now() -> Timestamp {
    "2026-03-01T00:30:00Z".parse().unwrap()
}

/// Writes a certificate and key for these names.
fn write_pair(folder: &Path, file: &str, names: &[&str]) -> (PathBuf, PathBuf) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let params = CertificateParams::new(names).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let (crt, pem) = (
        folder.join(format!("{file}.crt")),
        folder.join(format!("{file}.key")),
    );
    fs::write(&crt, certificate.pem()).unwrap();
    fs::write(&pem, key.serialize_pem()).unwrap();
    (crt, pem)
}

fn first_name(key: &CertifiedKey) -> String {
    let parsed = webpki::EndEntityCert::try_from(key.end_entity_cert().unwrap()).unwrap();
    parsed.valid_dns_names().next().unwrap().to_owned()
}

#[test]
fn requested_name_selects_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(default_provider());
    let load = |file: &str, names: &[&str]| {
        let (crt, key) = write_pair(folder.path(), file, names);
        pair(&crt, &key, &provider).unwrap()
    };
    let for_names = |pair, names: &[&str]| ForNames {
        names: names.iter().map(|&name| name.to_owned()).collect(),
        pair,
    };
    let certificates =
        Certificates::from_files(load("default", &["default.test"])).with_names(vec![
            for_names(load("own", &["own.test", "*.own.test"]), &[]),
            for_names(
                load("given", &["given.test"]),
                &["other.test", "a.own.test"],
            ),
        ]);
    assert_eq!(certificates.refreshed().len(), 3);
    for (name, expected) in [
        (None, "default.test"),
        (Some("unknown.test"), "default.test"),
        (Some("own.test"), "own.test"),
        (Some("OWN.test"), "own.test"),
        (Some("b.own.test"), "own.test"),
        (Some("a.b.own.test"), "default.test"),
        (Some("a.own.test"), "given.test"),
        (Some("other.test"), "given.test"),
        (Some("given.test"), "default.test"),
    ] {
        assert_eq!(first_name(&certificates.choose(name)), expected, "{name:?}");
    }
}

#[test]
fn self_signed_certificate_is_for_this_host() {
    let certificates = Certificates::own(now(), &default_provider()).unwrap();
    assert_eq!(first_name(&certificates.choose(None)), "localhost");
    assert!(certificates.refreshed().is_empty());
    assert_eq!(format!("{certificates:?}"), "Certificates { .. }");
}

#[test]
fn created_certificate_stays_in_the_folder() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("certs");
    let (crt, key) = pair_in(&folder, now()).unwrap();
    assert_eq!(crt, folder.join("kube-controller-manager.crt"));
    assert_eq!(key, folder.join("kube-controller-manager.key"));
    let made = fs::read_to_string(&crt).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let provider = Arc::new(default_provider());
    assert_eq!(
        first_name(&pair(&crt, &key, &provider).unwrap().current()),
        "localhost"
    );
    // A second start reuses the files.
    pair_in(&folder, now()).unwrap();
    assert_eq!(fs::read_to_string(&crt).unwrap(), made);

    fs::remove_file(&key).unwrap();
    let error = pair_in(&folder, now()).unwrap_err().to_string();
    assert!(
        error.ends_with(".key: remove it, or add the key"),
        "{error}"
    );
}

#[test]
fn mismatched_key_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (crt, _) = write_pair(folder.path(), "a", &["a.test"]);
    let (_, key) = write_pair(folder.path(), "b", &["b.test"]);
    let provider = Arc::new(default_provider());
    let refused = |crt: &Path, key: &Path| {
        let error = pair(crt, key, &provider).err().unwrap();
        kube_apimachinery::error_line::error_line(error.as_ref())
    };
    let error = refused(&crt, &key);
    assert!(error.contains("the certificate and its key: "), "{error}");
    fs::write(&key, "no key").unwrap();
    assert!(refused(&crt, &key).contains("the key file: "));
    fs::write(&crt, "").unwrap();
    assert!(refused(&crt, &key).ends_with("the certificate file: it contains no certificate"));
}
