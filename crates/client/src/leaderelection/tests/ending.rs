//! Tests of ending the work and losing the lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use super::super::{ConfigError, Ended, LeaderElectionConfig, LeaderElector, Lost};
use super::support::{Candidate, Fault, Server, never};
use crate::config::{ClientOptions, layered};
use crate::fake::CapturedLog;
use crate::fence::NotLeading;
use crate::resource::PODS;

const SECOND: Duration = Duration::from_secs(1);

fn releasing() -> LeaderElectionConfig {
    LeaderElectionConfig {
        release_on_cancel: true,
        ..LeaderElectionConfig::default()
    }
}

/// Records that it was dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn work_starts_and_stops_with_lease() {
    let server = Server::new();
    server.fail(&[Fault::Refuse(500), Fault::Refuse(500)]);
    let Candidate {
        elector,
        events,
        metrics,
        ..
    } = Candidate::new(&server, "a");
    let health = elector.health();
    let fence = elector.fence();
    let (begun, dropped) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (begins, guard) = (Arc::clone(&begun), Dropped(Arc::clone(&dropped)));
    let work = async move {
        let _guard = guard;
        begins.store(true, Ordering::Relaxed);
        never().await;
    };
    let observe = async {
        sleep(3 * SECOND).await;
        assert!(!begun.load(Ordering::Relaxed) && !health.is_leader());
        assert_eq!(fence.check(), Err(NotLeading));
        sleep(2 * SECOND).await;
        assert!(begun.load(Ordering::Relaxed) && health.is_leader());
        assert_eq!(fence.check(), Ok(()));
        server.fail_always(Fault::Hang);
    };
    let cancelled = CancellationToken::new();
    let (ended, ()) = tokio::join!(elector.run(&cancelled, work), observe);
    let within = 10 * SECOND;
    assert_eq!(ended, Ended::Lost(Lost::NotRenewed { within }));
    assert!(dropped.load(Ordering::Relaxed));
    assert_eq!(fence.check(), Err(NotLeading));
    assert_eq!(metrics.take(), ["lock false", "lock true", "lock false"]);
    let events = events.drain_with_references();
    let lines: Vec<&str> = events.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "Normal LeaderElection a became leader",
            "Normal LeaderElection a stopped leading",
        ]
    );
    let lease = &events[0].0;
    assert_eq!(
        (lease.kind.as_str(), lease.api_version.as_str()),
        ("Lease", "coordination.k8s.io/v1")
    );
    assert_eq!(
        (lease.namespace.as_str(), lease.name.as_str()),
        ("kube-system", "lock")
    );
    assert_eq!(lease.resource_version, "2");
}

#[tokio::test(start_paused = true)]
async fn cancelled_candidate_never_leads() {
    let server = Server::with(json!({"holderIdentity": "b", "leaseDurationSeconds": 15}));
    let candidate = Candidate::with(&server, "a", releasing(), "2026-01-02T03:04:05Z");
    let cancelled = CancellationToken::new();
    let end = async {
        sleep(3 * SECOND).await;
        cancelled.cancel();
    };
    let (ended, ()) = tokio::join!(candidate.elector.run(&cancelled, never()), end);
    assert_eq!(ended, Ended::NeverLed);
    assert_eq!(server.log(), ["0 GET 200", "2 GET 200"]);
    assert_eq!(candidate.events.drain(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn lease_is_held_until_work_ends_then_expires() {
    let server = Server::new();
    let candidate = Candidate::new(&server, "a");
    let cancelled = CancellationToken::new();
    let work = async {
        cancelled.cancel();
        sleep(5 * SECOND).await;
        7
    };
    assert_eq!(
        candidate.elector.run(&cancelled, work).await,
        Ended::Finished(7)
    );
    let log = server.log();
    assert_eq!(log.last().unwrap(), "4 PUT a 200");
    assert_eq!(server.spec("holderIdentity"), "a");
    assert_eq!(
        candidate.metrics.take(),
        ["lock false", "lock true", "lock false"]
    );
}

#[tokio::test(start_paused = true)]
async fn lease_is_released_if_configured() {
    let server = Server::with(json!({"leaseTransitions": 6}));
    let candidate = Candidate::with(&server, "a", releasing(), "2026-01-02T03:04:05Z");
    let fence = candidate.elector.fence();
    let work = sleep(3 * SECOND);
    let cancelled = CancellationToken::new();
    assert_eq!(
        candidate.elector.run(&cancelled, work).await,
        Ended::Finished(())
    );
    assert_eq!(fence.check(), Err(NotLeading));
    assert_eq!(
        server.lease()["spec"],
        json!({
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": "2026-01-02T03:04:08.000000Z",
            "renewTime": "2026-01-02T03:04:08.000000Z",
            "leaseTransitions": 7,
        })
    );
    // The next candidate need not wait.
    server.log();
    Candidate::new(&server, "b").run_for(1.0).await;
    assert_eq!(server.log(), ["3 GET 200", "3 PUT b 200", "3 PUT b 200"]);
    assert_eq!(server.spec("leaseTransitions"), 8);
}

#[tokio::test(start_paused = true)]
async fn rival_lease_is_not_released() {
    let server = Server::new();
    let candidate = Candidate::with(&server, "a", releasing(), "2026-01-02T03:04:05Z");
    let work = async {
        sleep(SECOND).await;
        server.change(|lease| lease["spec"]["holderIdentity"] = json!("b"));
    };
    let cancelled = CancellationToken::new();
    assert_eq!(
        candidate.elector.run(&cancelled, work).await,
        Ended::Finished(())
    );
    assert_eq!(server.spec("holderIdentity"), "b");
}

#[tokio::test(start_paused = true)]
async fn release_times_out_like_other_calls() {
    for (fault, code) in [(Fault::Hang, 0), (Fault::Postpone(60), 503)] {
        let log = CapturedLog::at(Level::WARN);
        let server = Server::new();
        let candidate = Candidate::with(&server, "a", releasing(), "2026-01-02T03:04:05Z");
        let work = async {
            sleep(SECOND).await;
            server.log();
            server.fail_always(fault);
        };
        let begin = Instant::now();
        let cancelled = CancellationToken::new();
        assert_eq!(
            candidate.elector.run(&cancelled, work).await,
            Ended::Finished(())
        );
        assert_eq!(begin.elapsed(), 6 * SECOND, "{fault:?}");
        assert_eq!(server.log(), [format!("1 GET {code}")]);
        assert_eq!(
            log.take(),
            [
                "WARN failed to release the lease: GET lease kube-system/lock: no response from the \
              API server within 5 s lock=kube-system/lock"
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn leader_is_healthy_until_twenty_seconds_after_expiry() {
    let server = Server::new();
    let candidate = Candidate::new(&server, "a");
    let (health, machine) = (candidate.elector.health(), Arc::clone(&candidate.machine));
    assert_eq!(health.check(), Ok(()));
    candidate.run_for(0.5).await;
    machine.sleep(Duration::from_millis(34_500));
    assert_eq!(health.check(), Ok(()));
    machine.sleep(Duration::from_millis(1));
    let text = "failed election to renew leadership on lease lock";
    assert_eq!(health.check(), Err(text.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn follower_is_healthy_with_expired_lease() {
    let server = Server::with(json!({"holderIdentity": "b", "leaseDurationSeconds": 7200}));
    let candidate = Candidate::new(&server, "a");
    let (health, machine) = (candidate.elector.health(), Arc::clone(&candidate.machine));
    candidate.run_for(3.0).await;
    machine.sleep(3600 * SECOND);
    assert_eq!((health.check(), health.is_leader()), (Ok(()), false));
}

#[tokio::test(start_paused = true)]
async fn elector_requires_identity_and_valid_durations() {
    let server = Server::new();
    let parts = Candidate::parts(&server, "");
    let error = LeaderElector::new(LeaderElectionConfig::default(), parts).err();
    assert_eq!(error, Some(ConfigError::NoIdentity));
    let config = LeaderElectionConfig {
        lease_duration: SECOND,
        ..LeaderElectionConfig::default()
    };
    let error = LeaderElector::new(config, Candidate::parts(&server, "a")).err();
    assert_eq!(error, Some(ConfigError::LeaseTooShort));
}

/// Runs an election that releases its lease. The work writes to a server that never responds, and
/// ends this long after the write timed out. Returns the final holder and the log.
async fn holder_after_silence(pause: Duration) -> (serde_json::Value, Vec<String>) {
    let log = CapturedLog::at(Level::INFO);
    let server = Server::new();
    let candidate = Candidate::with(&server, "a", releasing(), "2026-01-02T03:04:05Z");
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, tower::BoxError>>()
    });
    let options = ClientOptions {
        fence: Some(candidate.elector.fence()),
        ..ClientOptions::default()
    };
    let client = layered(silent, &options);
    let work = async {
        let writing = client.create(&PODS, "ns", "{}".to_owned());
        assert!(tokio::time::timeout(SECOND, writing).await.is_err());
        sleep(pause).await;
    };
    let cancelled = CancellationToken::new();
    let ended = Box::pin(candidate.elector.run(&cancelled, work)).await;
    assert_eq!(ended, Ended::Finished(()));
    (server.spec("holderIdentity"), log.take())
}

#[tokio::test(start_paused = true)]
async fn lease_is_not_released_while_write_may_arrive() {
    let (holder, log) = holder_after_silence(14 * SECOND).await;
    assert_eq!(holder, "a");
    assert_eq!(
        log.last().unwrap(),
        "INFO letting the lease expire, because a write without a response, or with a 5xx, may \
         still take effect lock=kube-system/lock"
    );
    let (holder, log) = holder_after_silence(15 * SECOND).await;
    assert_eq!(holder, "");
    assert_eq!(
        log.last().unwrap(),
        "INFO released the lease lock=kube-system/lock"
    );
}
