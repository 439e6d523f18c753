//! Tests of the lines that tell the state of the API server, under paused time.

use std::io::{Error as IoError, ErrorKind};

use http::Method;
use tracing::Level;

use super::*;
use crate::fake::CapturedLog;
use crate::resource::{PODS, STATEFUL_SETS};

fn lists(resource: &crate::resource::Resource) -> Right {
    let path = resource.collection_path("");
    Right::of(&Method::GET, &resource.group_resource(), &path)
}

fn creates(namespace: &str) -> Right {
    let path = PODS.collection_path(namespace);
    Right::of(&Method::POST, &PODS.group_resource(), &path)
}

fn refused() -> Error {
    Error::Transport {
        action: "GET /api/v1/pods".to_owned(),
        source: Box::new(IoError::from(ErrorKind::ConnectionRefused)),
    }
}

fn expired() -> Error {
    let cause = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
    Error::Transport {
        action: "GET /api/v1/pods".to_owned(),
        source: Box::new(IoError::other(cause)),
    }
}

fn denied(namespace: &str) -> Error {
    let message = format!(
        "pods is forbidden: User \"jane\" cannot create resource \"pods\" in API group \"\" in the \
         namespace \"{namespace}\""
    );
    Error::api(403, "Forbidden", message)
}

async fn pass(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_once_and_its_end_with_its_length() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    for _ in 0..100 {
        state.failed(&lists(&PODS), &refused());
        state.failed(&creates("ns"), &refused());
    }
    assert_eq!(
        log.take(),
        [
            "WARN API server unreachable, trying again; check that it is up and that its address is \
          right error=GET /api/v1/pods: connection refused"
        ]
    );
    pass(42).await;
    for _ in 0..100 {
        state.succeeded(&lists(&PODS));
    }
    assert_eq!(log.take(), ["INFO API server reachable again after=42 s"]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_changes_its_kind_is_told_again() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    let unauthorized = Error::api(401, "Unauthorized", "Unauthorized");
    for err in [refused(), expired(), unauthorized] {
        state.failed(&lists(&PODS), &err);
        pass(10).await;
        state.failed(&lists(&PODS), &err);
    }
    state.failed(&lists(&PODS), &Error::api(404, "NotFound", "no"));
    let lines = log.take();
    let begins = [
        "WARN API server unreachable",
        "WARN no secure connection to the API server",
        "WARN API server does not accept the credentials",
        "INFO API server accepts the credentials again after=30 s",
    ];
    assert_eq!(lines.len(), begins.len(), "{lines:#?}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
    }
    assert!(lines[1].contains("Expired"), "{}", lines[1]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_told_with_the_rule_that_grants_it() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    for _ in 0..10 {
        state.failed(&creates("ns"), &denied("ns"));
        state.succeeded(&creates("other"));
    }
    assert_eq!(
        log.take(),
        [
            "WARN right is missing, trying again; grant this user a role with the rule \
          {apiGroups: [\"\"], resources: [\"pods\"], verbs: [\"create\"]} \
          right=create pods in the namespace \"ns\" \
          error=pods is forbidden: User \"jane\" cannot create resource \"pods\" in API group \"\" \
          in the namespace \"ns\""
        ]
    );
    pass(7).await;
    state.failed(&creates("ns"), &Error::api(409, "AlreadyExists", "there"));
    assert_eq!(
        log.take(),
        ["INFO right is granted right=create pods in the namespace \"ns\" after=7 s"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_quota_forbids_is_no_missing_right() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    let quota = Error::api(
        403,
        "Forbidden",
        "pods \"web-0\" is forbidden: exceeded quota: q",
    );
    state.failed(&creates("ns"), &quota);
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn reads_that_fail_are_told_until_the_last_of_them_works() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    let broken = Error::api(500, "InternalError", "etcd is gone");
    state.failed(&creates("ns"), &broken);
    state.failed(&lists(&PODS), &broken);
    state.failed(&lists(&STATEFUL_SETS), &broken);
    pass(5).await;
    state.succeeded(&lists(&PODS));
    state.failed(&lists(&STATEFUL_SETS), &broken);
    state.succeeded(&lists(&STATEFUL_SETS));
    assert_eq!(
        log.take(),
        [
            "WARN API server fails to answer, trying again; see its log \
             request=list pods in all namespaces error=etcd is gone",
            "INFO API server answers again after=5 s",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_comes_and_goes_for_ever_is_told_now_and_then() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    for _ in 0..3600 {
        state.failed(&lists(&PODS), &refused());
        state.succeeded(&lists(&PODS));
        pass(1).await;
    }
    let lines = log.take();
    assert!((100..=145).contains(&lines.len()), "{}", lines.len());
    assert!(
        lines.iter().any(|line| line.contains("withheld=")),
        "{lines:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_not_sent_says_nothing_of_the_server() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    state.failed(&lists(&PODS), &refused());
    log.take();
    state.failed(&creates("ns"), &Error::InvalidRequest("no name".to_owned()));
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_handle_without_rights_logs_outages_alone() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    let handle = state.without_rights();
    handle.failed(&creates("ns"), &denied("ns"));
    assert_eq!(log.take(), [""; 0]);
    state.failed(&creates("ns"), &denied("ns"));
    assert_eq!(log.take().len(), 1);
    handle.succeeded(&creates("ns"));
    assert_eq!(log.take(), [""; 0]);
    handle.failed(&lists(&PODS), &refused());
    // One outage of all clients is one line.
    state.failed(&lists(&PODS), &refused());
    assert_eq!(log.take().len(), 1);
    state.succeeded(&creates("ns"));
    assert_eq!(log.take().len(), 2);
}
