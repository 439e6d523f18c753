//! Tests of the API health log, under paused time.

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
async fn outage_is_logged_once_with_its_duration() {
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
async fn changed_outage_is_logged_again() {
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
        "WARN API server rejects the credentials",
        "INFO API server accepts the credentials again after=30 s",
    ];
    assert_eq!(lines.len(), begins.len(), "{lines:#?}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
    }
    assert!(lines[1].contains("Expired"), "{}", lines[1]);
}

#[tokio::test(start_paused = true)]
async fn missing_permission_is_logged_with_its_rule() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    for _ in 0..10 {
        state.failed(&creates("ns"), &denied("ns"));
        state.succeeded(&creates("other"));
    }
    assert_eq!(
        log.take(),
        [
            "WARN permission is missing, trying again; grant this user a role with the rule \
          {apiGroups: [\"\"], resources: [\"pods\"], verbs: [\"create\"]} \
          permission=create pods in the namespace \"ns\" \
          error=pods is forbidden: User \"jane\" cannot create resource \"pods\" in API group \"\" \
          in the namespace \"ns\""
        ]
    );
    pass(7).await;
    state.failed(&creates("ns"), &Error::api(409, "AlreadyExists", "there"));
    assert_eq!(
        log.take(),
        ["INFO permission is granted permission=create pods in the namespace \"ns\" after=7 s"]
    );
}

#[tokio::test(start_paused = true)]
async fn exceeded_quota_is_not_a_missing_permission() {
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
async fn failing_reads_are_logged_until_all_recover() {
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
            "WARN API server does not serve lists or watches, trying again; see its log \
             request=list pods in all namespaces error=etcd is gone",
            "INFO API server serves lists and watches again after=5 s",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn flapping_fault_is_rate_limited() {
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
async fn unsent_request_is_ignored() {
    let log = CapturedLog::at(Level::INFO);
    let state = ApiHealthLog::default();
    state.failed(&lists(&PODS), &refused());
    log.take();
    state.failed(&creates("ns"), &Error::InvalidRequest("no name".to_owned()));
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn handle_without_permissions_logs_only_outages() {
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
