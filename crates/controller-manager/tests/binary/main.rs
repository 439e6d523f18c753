//! Tests of the shipped binary: exit codes, and the one-line error of each failure.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod api;
mod election;
mod generated;
mod port;
mod program;
mod work;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use api::{Answer, FakeApi, Request};
use program::{Finished, Program, run, start, start_with};

const OFF: &str = "--leader-elect=false";

/// Checks that a run fails with this one line on stderr and an empty stdout.
fn assert_fails(arguments: &[&str], expected: &str) {
    let Finished {
        code,
        stdout,
        stderr,
    } = run(arguments);
    assert_eq!(stderr, format!("Error: {expected}\n"), "{arguments:?}");
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{arguments:?}");
}

/// Terminates a waiting program and returns its log.
fn end(program: Program) -> String {
    program.signal("TERM");
    let finished = program.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(!finished.stderr.contains("Error"), "{}", finished.stderr);
    finished.stderr
}

/// Warnings in a log.
fn warnings(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.starts_with('W')).collect()
}

/// Starts the program against a server that rejects requests until the program has logged this
/// line, and waits until the program is ready. Returns its log.
fn wait_out(
    refuse: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
    line: &str,
) -> String {
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = Arc::clone(&is_mended);
    let api = FakeApi::new(move |request| {
        let refused = refuse(request).filter(|_| !is_mended.load(Ordering::Relaxed));
        refused.unwrap_or_else(|| Answer::empty_list_or_watch(request))
    });
    let mut program = start(&[OFF, "--master", &api.address()], None);
    program.wait_for_line(line);
    mended.store(true, Ordering::Relaxed);
    program.wait_for_line("ready: caches are filled");
    end(program)
}

#[test]
fn version_and_help_print_to_stdout() {
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
fn bad_flags_are_reported_in_one_line() {
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
fn missing_kubeconfig_is_reported_in_one_line() {
    assert_fails(
        &[OFF, "--kubeconfig", "missing/config"],
        "cannot read the kubeconfig missing/config: No such file or directory (os error 2); \
         check --kubeconfig",
    );
}

#[test]
fn server_is_required_outside_a_cluster() {
    let Finished { code, stderr, .. } = run(&[OFF]);
    assert!(
        stderr.starts_with("Error: no --kubeconfig, no --master, and not in a cluster: "),
        "{stderr}"
    );
    assert_eq!((code, stderr.lines().count()), (Some(1), 1));
}

#[test]
fn proxy_credentials_never_appear_in_errors() {
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
fn unreachable_server_is_logged_once_until_it_responds() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let folder = tempfile::tempdir().unwrap();
    write_kubeconfig(folder.path(), &format!("server: \"http://{address}\""));
    let mut program = start(&[OFF, "--kubeconfig=config"], Some(folder.path()));
    program.wait_for_line("API server unreachable, trying again");
    let _api = FakeApi::at(address, Answer::empty_list_or_watch);
    program.wait_for_line("API server reachable again");
    program.wait_for_line("ready: caches are filled");
    let log = end(program);
    assert_eq!(warnings(&log).len(), 1, "{log}");
}

#[test]
fn system_authorities_are_read_only_to_verify_a_server() {
    let none = [
        ("SSL_CERT_FILE", "/dev/null"),
        ("SSL_CERT_DIR", "/dev/null"),
    ];
    let verified = start_with(&[OFF, "--master=https://127.0.0.1:1"], None, &none).wait();
    assert_eq!(
        (verified.code, verified.stderr.lines().count()),
        (Some(1), 2)
    );
    let problem = "No CA certificates were loaded from the system";
    assert!(verified.stderr.contains(problem), "{}", verified.stderr);

    let plain = FakeApi::new(Answer::empty_list_or_watch);
    let mut program = start_with(&[OFF, "--master", &plain.address()], None, &none);
    program.wait_for_line("ready: caches are filled");
    end(program);

    let (secure, _) = FakeApi::over_tls(Answer::empty_list_or_watch);
    let unverified = format!(
        "insecure-skip-tls-verify: true, server: \"{}\"",
        secure.address()
    );
    let proxied = format!("{unverified}, proxy-url: \"https://127.0.0.1:1\"");
    for (cluster, line) in [
        (unverified, "ready: caches are filled"),
        (proxied, "API server unreachable, trying again"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write_kubeconfig(folder.path(), &cluster);
        let mut program = start_with(&[OFF, "--kubeconfig=config"], Some(folder.path()), &none);
        program.wait_for_line(line);
        end(program);
    }
}

/// Writes the file `config` for a cluster with these fields, without credentials.
fn write_kubeconfig(folder: &Path, cluster: &str) {
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: c,
           contexts: [{{name: c, context: {{cluster: k, user: u}}}}],
           clusters: [{{name: k, cluster: {{{cluster}}}}}],
           users: [{{name: u, user: {{}}}}]}}"
    );
    std::fs::write(folder.join("config"), kubeconfig).unwrap();
}

#[test]
fn missing_tls_is_logged_once_until_it_works() {
    let api = FakeApi::new(|_| Answer::ok("ok"));
    let address = api.address().replace("http:", "https:");
    let mut program = start(&[OFF, "--master", &address], None);
    program.wait_for_line("no secure connection to the API server, trying again");
    let log = end(program);
    assert_eq!(warnings(&log).len(), 1, "{log}");
}

#[test]
fn rejected_credentials_are_logged_once_until_accepted() {
    let refuse = |_: &Request| Some(Answer::failure(401, "Unauthorized", "Unauthorized"));
    let log = wait_out(refuse, "API server rejects the credentials, trying again");
    assert_eq!(warnings(&log).len(), 1, "{log}");
    assert!(
        log.contains("API server accepts the credentials again"),
        "{log}"
    );
}

#[test]
fn missing_permissions_are_logged_once_until_granted() {
    let refuse = |request: &Request| {
        let message = "pods is forbidden: User \"jane\" cannot list resource \"pods\"";
        let is_of_pods = request.path == "/api/v1/pods";
        is_of_pods.then(|| Answer::failure(403, "Forbidden", message))
    };
    let log = wait_out(refuse, "permissions are missing, trying again");
    let warnings = warnings(&log);
    assert_eq!(warnings.len(), 1, "{log}");
    for part in [
        "bind the ClusterRole system:controller:statefulset-controller",
        "list pods in all namespaces",
        "User \\\"jane\\\" cannot list",
    ] {
        assert!(warnings[0].contains(part), "{log}");
    }
    assert!(
        log.contains("the API server grants the required access"),
        "{log}"
    );
}

#[test]
fn signal_ends_the_wait_for_the_server() {
    let api = FakeApi::new(|_| Answer::Silence);
    let mut program = start(&[OFF, "--master", &api.address()], None);
    program.wait_for_line("starting");
    end(program);
}

#[test]
fn hung_credential_plugin_does_not_block_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = "{apiVersion: client.authentication.k8s.io/v1, command: sh, \
                  args: [-c, \"echo LOUD >&2; touch runs; exec sleep 1000\"]}";
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: c,
           contexts: [{{name: c, context: {{cluster: k, user: u}}}}],
           clusters: [{{name: k, cluster: {{server: \"https://127.0.0.1:1\"}}}}],
           users: [{{name: u, user: {{exec: {plugin}}}}}]}}"
    );
    std::fs::write(folder.path().join("config"), kubeconfig).unwrap();
    let mut program = start(&[OFF, "--kubeconfig=config"], Some(folder.path()));
    program.wait_for_line("the first requests to the API server take longer than 10 s");
    assert!(folder.path().join("runs").exists());
    let begin = begin();
    let log = end(program);
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(!log.contains("LOUD"), "{log}");
}

#[test]
fn signal_shuts_down_gracefully() {
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
fn second_signal_exits_immediately() {
    let (asked, was_asked) = std::sync::mpsc::channel();
    let set = r#"{"metadata":{"name":"web","namespace":"ns","uid":"u","resourceVersion":"1"},
        "spec":{"replicas":1,"serviceName":"web","selector":{"matchLabels":{"app":"web"}},
        "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[]}}}}"#;
    let api = FakeApi::new(move |request| {
        if request.method == "POST" {
            // The response to the sync's request never arrives.
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

#[expect(clippy::disallowed_methods, reason = "process run time is real time")]
fn begin() -> Instant {
    Instant::now()
}
