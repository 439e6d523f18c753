//! Failed starts: one line with the reason, and nothing left behind.

use std::path::Path;

use rcgen::{CertificateParams, KeyPair};
use rustix::process::Signal;

use crate::running::{Running, program};

/// Runs a program that fails to start and returns its message after `error: `.
fn refusal(args: &[&str]) -> String {
    let output = program().args(args).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    let line = stderr.trim_end().strip_prefix("error: ");
    line.unwrap_or_else(|| panic!("{args:?}: {stderr}"))
        .to_owned()
}

/// Reports whether a folder holds exactly these files.
fn holds(folder: &Path, names: &[&str]) -> bool {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort_unstable();
    found == names
}

#[test]
fn invalid_flags_prevent_the_start() {
    let starts = |args: &[&str], start: &str| {
        let said = refusal(args);
        assert!(said.starts_with(start), "{args:?}: {said}");
    };
    starts(&["--no-such-flag"], "unexpected argument '--no-such-flag'");
    starts(&["stray"], "unexpected argument 'stray'");
    starts(&["--secure-port"], "a value is required for '--secure-port");
    starts(
        &["--secure-port", "70000"],
        "invalid value '70000' for '--secure-port",
    );
    starts(
        &["--ready-delay", "soon"],
        "invalid value 'soon' for '--ready-delay",
    );
    starts(&["--log-window", "-1"], "unexpected argument '-1'");
    let modes = ["--authorization-mode", "RBAC,Webhook"];
    starts(
        &modes,
        "invalid value 'RBAC,Webhook' for '--authorization-mode",
    );
    starts(
        &["--actors", "kubelet,nobody"],
        "--actors: unknown actor \"nobody\"",
    );
    let address = ["--bind-address", "0.0.0.0"];
    starts(&address, "listening on 0.0.0.0:0: only loopback addresses");
}

#[test]
fn occupied_port_prevents_the_start() {
    let running = Running::start(&["--actors", ""]);
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let audit = folder.path().join("audit.log");
    let said = refusal(&[
        "--secure-port",
        running.port(),
        "--kubeconfig-out",
        kubeconfig.to_str().unwrap(),
        "--audit-log-path",
        audit.to_str().unwrap(),
    ]);
    let port = running.port();
    assert!(
        said.starts_with(&format!("listening on 127.0.0.1:{port}: ")),
        "{said}"
    );
    assert_eq!(said.matches("os error").count(), 1, "{said}");
    assert!(holds(folder.path(), &[]));
    running.end(Signal::TERM);
}

#[test]
fn unreadable_files_prevent_the_start() {
    for flag in [
        "token-auth-file",
        "fault-plan-file",
        "pod-rules-file",
        "client-ca-file",
    ] {
        let said = refusal(&[&format!("--{flag}"), "/nonexistent/file"]);
        let start = format!("--{flag}: reading /nonexistent/file: No such file");
        assert!(said.starts_with(&start), "{said}");
    }
    let said = refusal(&[
        "--tls-cert-file",
        "/nonexistent/a",
        "--tls-private-key-file",
        "b",
    ]);
    assert!(
        said.starts_with("--tls-cert-file: reading /nonexistent/a: "),
        "{said}"
    );
}

#[test]
fn malformed_files_prevent_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let path = file.to_str().unwrap();
    for (flag, text, wanted) in [
        (
            "--token-auth-file",
            "token,user,uid\nonly,two\n",
            "line 2 of the token file: must have at least 3 columns (token, user name, user uid), \
             found 2",
        ),
        (
            "--fault-plan-file",
            "{\n  \"requests\": [{\"action\": \"explode\"}]\n}\n",
            "reading a fault plan: unknown variant `explode`",
        ),
        (
            "--fault-plan-file",
            "{\"requests\": [",
            "reading a fault plan: EOF while parsing a list at line 1 column 14",
        ),
        (
            "--pod-rules-file",
            "- behaviour: {outcome: explodes}\n",
            "reading pod rules: ",
        ),
        ("--client-ca-file", "nothing", "contains no certificate"),
    ] {
        std::fs::write(&file, text).unwrap();
        let said = refusal(&[flag, path]);
        let start = format!("{flag}: {path}: {wanted}");
        assert!(said.starts_with(&start), "{said}");
    }
    std::fs::write(&file, "{\n  \"requests\": [{\"action\": \"explode\"}]\n}\n").unwrap();
    let said = refusal(&["--fault-plan-file", path]);
    assert_eq!(said.matches("explode").count(), 1, "{said}");
    assert!(said.ends_with(" at line 2 column 35"), "{said}");
}

#[test]
fn unusable_certificates_prevent_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let certificate = file("certificate", &certificate.pem());
    let own_key = file("key", &key.serialize_pem());
    let other_key = file("other", &KeyPair::generate().unwrap().serialize_pem());
    let empty = file("empty", "");

    let said = refusal(&["--tls-cert-file", &certificate]);
    assert_eq!(said, "--tls-cert-file needs --tls-private-key-file");
    let said = refusal(&["--tls-private-key-file", &own_key]);
    assert_eq!(said, "--tls-private-key-file needs --tls-cert-file");
    for (certificate, key, wanted) in [
        (
            &certificate,
            &other_key,
            "the certificate can't be used with the key: ",
        ),
        (&empty, &own_key, "contains no certificate"),
        (&certificate, &empty, "contains no private key"),
    ] {
        let said = refusal(&[
            "--tls-cert-file",
            certificate,
            "--tls-private-key-file",
            key,
        ]);
        let start =
            format!("--tls-cert-file {certificate}, --tls-private-key-file {key}: {wanted}");
        assert!(said.starts_with(&start), "{said}");
    }
}

#[test]
fn unwritable_paths_prevent_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit.log");
    let audit = audit.to_str().unwrap();
    let said = refusal(&[
        "--audit-log-path",
        audit,
        "--kubeconfig-out",
        "/nonexistent/kubeconfig",
    ]);
    assert!(
        said.starts_with("writing the kubeconfig /nonexistent/kubeconfig: "),
        "{said}"
    );
    assert!(holds(folder.path(), &[]));

    // An existing log stays unchanged.
    std::fs::write(audit, "before\n").unwrap();
    refusal(&[
        "--audit-log-path",
        audit,
        "--kubeconfig-out",
        "/nonexistent/kubeconfig",
    ]);
    assert_eq!(std::fs::read_to_string(audit).unwrap(), "before\n");
    std::fs::remove_file(audit).unwrap();

    let kubeconfig = folder.path().join("kubeconfig");
    let said = refusal(&[
        "--audit-log-path",
        "/nonexistent/audit.log",
        "--kubeconfig-out",
        kubeconfig.to_str().unwrap(),
    ]);
    assert!(
        said.starts_with("opening the audit log /nonexistent/audit.log: "),
        "{said}"
    );
    assert!(holds(folder.path(), &[]));

    // A kubeconfig can't replace a folder, and its temporary file is removed.
    std::fs::create_dir(&kubeconfig).unwrap();
    let said = refusal(&["--kubeconfig-out", kubeconfig.to_str().unwrap()]);
    assert!(said.starts_with("writing the kubeconfig "), "{said}");
    assert!(holds(folder.path(), &["kubeconfig"]));
}

#[test]
fn closed_output_prevents_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = program()
        .args(["--kubeconfig-out", kubeconfig.to_str().unwrap()])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("error: writing the readiness line"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(holds(folder.path(), &[]));
}

#[test]
fn help_and_version_succeed() {
    for flag in ["--help", "--version"] {
        let output = program().arg(flag).output().unwrap();
        assert!(output.status.success(), "{flag}");
        assert!(output.stderr.is_empty(), "{flag}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("kube-test-control-plane"), "{said}");
    }
}
