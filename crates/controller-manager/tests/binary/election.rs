//! The program as one of several candidates for a lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::api::{Answer, FakeApi, Request};
use crate::program::{Finished, Program, start};

/// A lease that was last changed when nobody looked.
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
    let arguments = [
        "--master",
        &api.address(),
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=100ms",
    ];
    start(&arguments, None)
}

#[test]
fn a_candidate_watches_nothing_and_ends_well() {
    let (watched, asked) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (watches, asks) = (Arc::clone(&watched), Arc::clone(&asked));
    let (enough, is_enough) = std::sync::mpsc::channel();
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
    is_enough.recv_timeout(crate::program::PATIENCE).unwrap();
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
fn a_leader_that_loses_its_lease_ends_at_once_with_an_error() {
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
fn times_that_cannot_work_are_refused_in_one_line() {
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
