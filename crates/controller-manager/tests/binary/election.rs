//! Tests of the program as one of several candidates for a lease.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use statefulset_client::clock::{Clock as _, SystemClock};

use crate::api::{Answer, FakeApi, Request};
use crate::program::{Finished, PATIENCE, Program, start};

/// Election settings with short timeouts.
const FAST: [&str; 3] = [
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=100ms",
];

/// A lease whose last change no candidate observed.
fn lease(holder: &str, version: usize) -> String {
    format!(
        r#"{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
        "metadata":{{"name":"kube-controller-manager","namespace":"kube-system","uid":"u",
        "resourceVersion":"{version}"}},
        "spec":{{"holderIdentity":"{holder}","leaseDurationSeconds":3600,"leaseTransitions":1}}}}"#
    )
}

fn is_lease(request: &Request) -> bool {
    request
        .path
        .starts_with("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
}

fn started(api: &FakeApi) -> Program {
    start(&[&["--master", &api.address()], &FAST[..]].concat(), None)
}

#[test]
fn candidate_opens_no_watches_and_exits_cleanly() {
    let (watched, asked) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (watches, asks) = (Arc::clone(&watched), Arc::clone(&asked));
    let (enough, is_enough) = channel();
    let api = FakeApi::new(move |request| {
        if is_lease(request) {
            if asks.fetch_add(1, Ordering::Relaxed) == 5 {
                enough.send(()).unwrap();
            }
            return Answer::ok(&lease("somebody-else", 1));
        }
        watches.fetch_or(request.is_watch(), Ordering::Relaxed);
        Answer::empty_list_or_watch(request)
    });
    let program = started(&api);
    is_enough.recv_timeout(PATIENCE).unwrap();
    program.signal("TERM");
    let Finished { code, stderr, .. } = program.wait();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("attempting to acquire the leader lease"),
        "{stderr}"
    );
    assert!(!watched.load(Ordering::Relaxed));
}

#[test]
fn leader_exits_with_an_error_when_it_loses_the_lease() {
    let stolen = Arc::new(AtomicBool::new(false));
    let is_stolen = Arc::clone(&stolen);
    let version = AtomicUsize::new(1);
    let api = FakeApi::new(move |request| {
        if !is_lease(request) {
            return Answer::empty_list_or_watch(request);
        }
        let stolen = is_stolen.load(Ordering::Relaxed);
        match (request.method.as_str(), stolen) {
            ("GET", true) => Answer::ok(&lease("a-thief", 99)),
            ("GET", false) => Answer::ok(&lease("", version.load(Ordering::Relaxed))),
            (_, true) => Answer::failure(409, "Conflict", "the object has been modified"),
            (_, false) => {
                let version = version.fetch_add(1, Ordering::Relaxed) + 1;
                Answer::ok(&lease("it", version))
            }
        }
    });
    let mut program = started(&api);
    program.wait_for_line("ready: caches are filled");
    stolen.store(true, Ordering::Relaxed);
    let Finished { code, stderr, .. } = program.wait();
    let last = stderr.lines().last().unwrap();
    assert_eq!(last, "Error: leaderelection lost: \"a-thief\" has taken it");
    assert_eq!(code, Some(1), "{stderr}");
}

#[test]
fn forbidden_lease_is_logged_and_blocks_readiness() {
    let api = FakeApi::new(|request| {
        if is_lease(request) {
            let message = "leases.coordination.k8s.io is forbidden: User \"jane\" cannot get";
            return Answer::failure(403, "Forbidden", message);
        }
        Answer::empty_list_or_watch(request)
    });
    let mut program = started(&api);
    program.wait_for_line("permissions are missing, trying again");
    let log = crate::end(program);
    assert!(
        log.contains("get leases.coordination.k8s.io \\\"kube-controller-manager\\\""),
        "{log}"
    );
    assert!(!log.contains("attempting to acquire"), "{log}");
}

/// A kubeconfig with a plugin that issues short-lived tokens, and hangs once a file `broken`
/// exists.
fn kubeconfig_of_a_plugin_that_can_break(folder: &Path, server: &str) {
    let expires = SystemClock.now() + Duration::from_secs(50);
    let credentials =
        format!(r#"{{"status": {{"token": "t", "expirationTimestamp": "{expires}"}}}}"#);
    std::fs::write(folder.join("credentials"), credentials).unwrap();
    let script = "if [ -e broken ]; then echo > hangs; sleep 1000; else cat credentials; fi";
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: c,
           contexts: [{{name: c, context: {{cluster: k, user: u}}}}],
           clusters: [{{name: k, cluster: {{server: \"{server}\", certificate-authority: ca}}}}],
           users: [{{name: u, user: {{exec: {{
             apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, \"{script}\"]
           }}}}}}]}}"
    );
    std::fs::write(folder.join("config"), kubeconfig).unwrap();
}

#[test]
fn hung_credential_plugin_costs_no_lease_and_no_shutdown() {
    let (renewed, renewals) = channel();
    let (api, certificate) = FakeApi::over_tls(move |request| {
        if !is_lease(request) {
            return Answer::empty_list_or_watch(request);
        }
        if request.method == "PUT" {
            let _ = renewed.send(());
        }
        Answer::ok(&lease("", 1))
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca"), certificate).unwrap();
    kubeconfig_of_a_plugin_that_can_break(folder.path(), &api.address());
    let hangs = folder.path().join("hangs");
    assert!(
        Command::new("mkfifo")
            .arg(&hangs)
            .status()
            .unwrap()
            .success()
    );
    let arguments = [&["--kubeconfig=config"], &FAST[..]].concat();
    let mut program = start(&arguments, Some(folder.path()));
    program.wait_for_line("ready: caches are filled");
    std::fs::write(folder.path().join("broken"), "").unwrap();
    // Blocks until the plugin writes to it.
    std::fs::read(&hangs).unwrap();
    let _before: Vec<()> = renewals.try_iter().collect();
    // Longer than an unrenewed lease lasts.
    for _ in 0..30 {
        renewals.recv_timeout(PATIENCE).unwrap();
    }
    let begin = crate::begin();
    let log = crate::end(program);
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert_eq!(crate::warnings(&log).len(), 0, "{log}");
}

#[test]
fn invalid_election_times_are_rejected_in_one_line() {
    let arguments = [
        "--master=http://127.0.0.1:1",
        "--leader-elect-renew-deadline=15s",
    ];
    let Finished { code, stderr, .. } = start(&arguments, None).wait();
    assert_eq!(
        stderr,
        "Error: leaseDuration must be greater than renewDeadline\n"
    );
    assert_eq!(code, Some(1));
}
