//! The program as it is shipped: exit codes, and the one line that tells each failure.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod api;
mod election;
mod generated;
mod port;
mod program;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use api::{Answer, FakeApi};
use program::{Finished, run, start, start_with};

const OFF: &str = "--leader-elect=false";

/// Checks that a run failed with one line on stderr and nothing else.
fn assert_fails(arguments: &[&str], expected: &str) {
    let Finished {
        code,
        stdout,
        stderr,
    } = run(arguments);
    assert_eq!(stderr, format!("Error: {expected}\n"), "{arguments:?}");
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{arguments:?}");
}

/// Checks that a run against an API failed, and how; returns its log.
fn assert_rejected(api: &FakeApi, expected: &str) -> String {
    let finished = run(&["--master", &api.address(), OFF]);
    let (log, last) = finished.stderr.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(last, format!("Error: {expected}"));
    assert_eq!(finished.code, Some(1));
    log.to_owned()
}

#[test]
fn version_and_help_go_to_stdout() {
    let Finished {
        code,
        stdout,
        stderr,
    } = run(&["--version"]);
    let expected = format!(
        "statefulset-controller-manager {} (after Kubernetes v1.36.2)\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!((code, stdout, stderr.as_str()), (Some(0), expected, ""));

    let Finished {
        code,
        stdout,
        stderr,
    } = run(&["-h"]);
    assert!(
        stdout.contains("--concurrent-statefulset-syncs int"),
        "{stdout}"
    );
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
}

#[test]
fn bad_flags_are_told_in_one_line() {
    assert_fails(&["--nope"], "unknown flag: --nope; see --help");
    assert_fails(
        &["--kube-api-qps=fast"],
        "invalid argument \"fast\" for \"--kube-api-qps\" flag: must be a number",
    );
    assert_fails(
        &[OFF, "--concurrent-statefulset-syncs", "0"],
        "concurrent-statefulset-syncs must be greater than 0, but got 0",
    );
    assert_fails(
        &[OFF, "x"],
        "\"statefulset-controller-manager\" does not take any arguments, got [\"x\"]",
    );
}

#[test]
fn a_missing_kubeconfig_is_told_in_one_line() {
    assert_fails(
        &[OFF, "--kubeconfig", "missing/config"],
        "cannot read the kubeconfig missing/config: No such file or directory (os error 2); \
         check --kubeconfig",
    );
}

#[test]
fn outside_of_a_cluster_the_server_must_be_named() {
    let Finished { code, stderr, .. } = run(&[OFF]);
    assert!(
        stderr.starts_with("Error: no --kubeconfig, no --master, and not in a cluster: "),
        "{stderr}"
    );
    assert_eq!((code, stderr.lines().count()), (Some(1), 1));
}

#[test]
fn the_proxy_of_the_environment_is_used_but_never_told() {
    let proxy = [("HTTPS_PROXY", "ftp://jane:secret@proxy.test")];
    let finished = start_with(&[OFF, "--master=https://192.0.2.1"], None, &proxy).wait();
    assert_eq!(
        finished.stderr,
        "Error: cannot use the proxy of the environment: unsupported scheme \"ftp\", must be http, \
         https, or socks5; check HTTPS_PROXY\n"
    );
    assert_eq!(finished.code, Some(1));
}

#[test]
fn a_server_that_is_not_there_is_waited_for_and_then_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: c,
           contexts: [{{name: c, context: {{cluster: k, user: u}}}}],
           clusters: [{{name: k, cluster: {{server: \"http://{address}\"}}}}],
           users: [{{name: u, user: {{}}}}]}}"
    );
    std::fs::write(folder.path().join("config"), kubeconfig).unwrap();
    let finished = start(&[OFF, "--kubeconfig=config"], Some(folder.path())).wait();
    let last = finished.stderr.lines().last().unwrap();
    let expected =
        format!("Error: cannot reach the API server at http://{address}/: GET /healthz: ");
    assert!(last.starts_with(&expected), "{last}");
    assert_eq!(finished.code, Some(1));
}

#[test]
fn a_server_without_tls_is_told_at_once() {
    let api = FakeApi::new(|_| Answer::ok("ok"));
    let address = api.address().replace("http:", "https:");
    let begin = begin();
    let finished = run(&[OFF, "--master", &address]);
    let last = finished.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("Error: cannot reach the API server at https://"),
        "{last}"
    );
    assert!(
        last.ends_with("; check the address and the certificates of the kubeconfig"),
        "{last}"
    );
    assert_eq!(finished.code, Some(1));
    assert!(begin.elapsed() < Duration::from_secs(9));
}

#[test]
fn credentials_that_are_refused_are_told_in_one_line() {
    let api = FakeApi::new(|_| Answer::failure(401, "Unauthorized", "Unauthorized"));
    let expected = format!(
        "the API server at {}/ does not accept the credentials: Unauthorized; \
         check the token or client certificate",
        api.address()
    );
    assert_rejected(&api, &expected);
}

#[test]
fn missing_rights_are_told_in_one_line() {
    let api = FakeApi::new(|request| {
        if request.path == "/api/v1/pods" {
            return Answer::failure(403, "Forbidden", "pods is forbidden: User \"jane\" cannot");
        }
        Answer::empty_list_or_watch(request)
    });
    let log = assert_rejected(
        &api,
        "not allowed to list pods in all namespaces: pods is forbidden: User \"jane\" cannot; \
         bind the ClusterRole system:controller:statefulset-controller, or one with the same \
         rules, to this user",
    );
    assert!(log.contains("starting") && !log.contains("ready"), "{log}");
}

#[test]
fn a_signal_ends_it_in_order() {
    for signal in ["INT", "TERM"] {
        let api = FakeApi::new(Answer::empty_list_or_watch);
        let mut program = start(&[OFF, "--master", &api.address()], None);
        program.wait_for_line("ready: caches are filled");
        program.signal(signal);
        let finished = program.wait();
        assert_eq!(finished.code, Some(0), "{signal}: {}", finished.stderr);
        assert!(!finished.stderr.contains("Error"), "{}", finished.stderr);
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (asked, was_asked) = std::sync::mpsc::channel();
    let set = r#"{"metadata":{"name":"web","namespace":"ns","uid":"u","resourceVersion":"1"},
        "spec":{"replicas":1,"serviceName":"web","selector":{"matchLabels":{"app":"web"}},
        "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[]}}}}"#;
    let api = FakeApi::new(move |request| {
        if request.method == "POST" {
            // The sync waits for an answer that never comes.
            asked.send(()).unwrap();
            return Answer::Silence;
        }
        if request.path == "/apis/apps/v1/statefulsets" && !request.is_watch() {
            return Answer::list(&[set]);
        }
        Answer::empty_list_or_watch(request)
    });
    let mut program = start(
        &[OFF, "--master", &api.address(), "--logging-format=json"],
        None,
    );
    was_asked.recv_timeout(program::PATIENCE).unwrap();
    program.signal("TERM");
    program.wait_for_line("\"shutting down");
    let begin = begin();
    program.signal("TERM");
    let finished = program.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a process takes is a matter of real time"
)]
fn begin() -> Instant {
    Instant::now()
}
