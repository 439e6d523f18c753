//! The program: its readiness line, its end, and what it says when it can't start.

#![cfg(feature = "cli")]
#![expect(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, in helpers too"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kube-test-control-plane"))
}

/// Starts the program and waits for its readiness line; the URL in it.
fn start(args: &[&str]) -> (Child, String) {
    let mut child = program().args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = line.trim().strip_prefix("ready ").unwrap().to_owned();
    (child, url)
}

fn terminate(mut child: Child, signal: &str) {
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args([signal, &id])
            .status()
            .unwrap()
            .success()
    );
    assert!(child.wait().unwrap().success());
}

#[test]
fn it_is_ready_then_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    for signal in ["-TERM", "-INT"] {
        let (child, url) = start(&["--kubeconfig-out", path.to_str().unwrap()]);
        assert!(url.starts_with("https://127.0.0.1:"), "{url}");
        assert!(std::fs::read_to_string(&path).unwrap().contains(&url));
        terminate(child, signal);
    }
}

#[test]
fn what_prevents_the_start_is_said_in_one_line() {
    let (child, url) = start(&["--actors", ""]);
    let port = url.rsplit(':').next().unwrap();
    for args in [
        ["--secure-port", port],
        ["--bind-address", "0.0.0.0"],
        ["--actors", "kubelet,nobody"],
        ["--kubeconfig-out", "/nonexistent/kubeconfig"],
        ["--token-auth-file", "/nonexistent/tokens"],
    ] {
        let Output {
            status,
            stderr,
            stdout,
        } = program().args(args).output().unwrap();
        let text = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(1), "{args:?}");
        assert!(stdout.is_empty(), "{args:?}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("error: "), "{text}");
    }
    terminate(child, "-TERM");
}
