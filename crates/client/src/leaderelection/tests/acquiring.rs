//! Tests of acquiring the lease.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Candidate, Fault, Server};
use crate::backoff::SeededJitter;
use crate::fake::CapturedLog;
use crate::leaderelection::{ElectorParts, LeaderElectionConfig, LeaderElector};

/// Returns a lease with a holder.
fn held(holder: &str, seconds: u64) -> Value {
    json!({
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 4,
    })
}

#[tokio::test(start_paused = true)]
async fn missing_lease_is_created() {
    let server = Server::new();
    assert_eq!(Candidate::new(&server, "a").run_for(1.0).await, None);
    // The first renewal follows immediately.
    assert_eq!(server.log(), ["0 GET 404", "0 POST a 201", "0 PUT a 200"]);
    assert_eq!(
        server.lease(),
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "lock", "namespace": "kube-system", "resourceVersion": "3"},
            "spec": {
                "holderIdentity": "a",
                "leaseDurationSeconds": 15,
                "acquireTime": "2026-01-02T03:04:05.678901Z",
                "renewTime": "2026-01-02T03:04:05.678901Z",
                "leaseTransitions": 0,
            },
        })
    );
}

#[tokio::test(start_paused = true)]
async fn losing_create_race_is_retried() {
    let server = Server::new();
    server.fail(&[Fault::Nothing, Fault::Refuse(409)]);
    Candidate::new(&server, "a").run_for(2.5).await;
    assert_eq!(
        server.log(),
        [
            "0 GET 404",
            "0 POST a 409",
            "2 GET 404",
            "2 POST a 201",
            "2 PUT a 200"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn rival_lease_is_taken_after_its_duration_without_change() {
    // The times in the lease don't matter.
    for renewed in [
        "1999-01-01T00:00:00.000000Z",
        "2066-01-01T00:00:00.000000Z",
        // A server's rendering of a time in 9999 with an offset of -12 hours.
        "10000-01-01T11:59:59.000000Z",
    ] {
        let server = Server::with(held("other", 5));
        server.change(|lease| lease["spec"]["renewTime"] = json!(renewed));
        Candidate::new(&server, "a").run_for(7.0).await;
        assert_eq!(
            server.log(),
            [
                "0 GET 200",
                "2 GET 200",
                "4 GET 200",
                "6 GET 200",
                "6 PUT a 200",
                "6 PUT a 200"
            ]
        );
        assert_eq!(server.spec("holderIdentity"), "a");
        assert_eq!(server.spec("leaseTransitions"), 5);
        assert_eq!(server.spec("acquireTime"), "2026-01-02T03:04:11.678901Z");
        assert_eq!(server.spec("leaseDurationSeconds"), 15);
    }
}

#[tokio::test(start_paused = true)]
async fn jitter_lengthens_pauses_between_attempts() {
    let server = Server::with(held("other", 600));
    let mut candidate = Candidate::new(&server, "a");
    candidate.elector = LeaderElector::new(
        LeaderElectionConfig::default(),
        ElectorParts {
            jitter: Arc::new(SeededJitter::new(1)),
            ..Candidate::parts(&server, "a")
        },
    )
    .unwrap();
    candidate.run_for(100.0).await;
    // Without jitter, there is one attempt in two seconds.
    let attempts = server.log().len();
    assert!((20..40).contains(&attempts), "{attempts}");
}

#[tokio::test(start_paused = true)]
async fn each_change_restarts_rival_lease_duration() {
    let server = Server::with(held("other", 5));
    let candidate = Candidate::new(&server, "a").run_for(11.0);
    let renewal = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let renewed = json!("2026-01-01T00:00:00.000001Z");
        server.change(|lease| lease["spec"]["renewTime"] = renewed);
    };
    tokio::join!(candidate, renewal);
    // Seen at 4 s.
    let log = server.log();
    assert_eq!(log.iter().position(|line| line == "10 PUT a 200"), Some(6));
    assert_eq!(server.spec("holderIdentity"), "a");
}

#[tokio::test(start_paused = true)]
async fn released_lease_is_taken_immediately() {
    let server = Server::with(held("", 15));
    Candidate::new(&server, "a").run_for(1.0).await;
    assert_eq!(server.log(), ["0 GET 200", "0 PUT a 200", "0 PUT a 200"]);
    assert_eq!(server.spec("leaseTransitions"), 5);
}

#[tokio::test(start_paused = true)]
async fn lease_without_spec_has_no_holder() {
    let server = Server::with(Value::Null);
    Candidate::new(&server, "a").run_for(1.0).await;
    assert_eq!(server.log(), ["0 GET 200", "0 PUT a 200", "0 PUT a 200"]);
    assert_eq!(server.spec("leaseTransitions"), 1);
}

#[tokio::test(start_paused = true)]
async fn one_of_two_candidates_wins() {
    let server = Server::with(held("", 15));
    // Both read it before either writes.
    let first = Candidate::new(&server, "a").run_for(9.0);
    let second = Candidate::new(&server, "b").run_for(9.0);
    tokio::join!(first, second);
    let log = server.log();
    let winner = server.spec("holderIdentity");
    let loser = if winner == "a" { "b" } else { "a" };
    assert!(log.contains(&format!("0 PUT {loser} 409")), "{log:?}");
    let success = format!("PUT {loser} 200");
    assert!(!log.iter().any(|line| line.ends_with(&success)), "{log:?}");
    assert_eq!(server.spec("leaseTransitions"), 5);
}

#[tokio::test(start_paused = true)]
async fn candidate_recovers_from_lost_first_response() {
    let server = Server::with(held("", 15));
    server.fail(&[Fault::Nothing, Fault::LoseResponse]);
    let candidate = Candidate::new(&server, "a");
    let metrics = Arc::clone(&candidate.metrics);
    candidate.run_for(2.5).await;
    assert_eq!(
        server.log(),
        [
            "0 GET 200",
            "0 PUT a 200",
            "2 GET 200",
            "2 PUT a 200",
            "2 PUT a 200"
        ]
    );
    assert_eq!(server.spec("leaseTransitions"), 5);
    assert_eq!(server.spec("acquireTime"), "2026-01-02T03:04:05.678901Z");
    assert_eq!(server.spec("renewTime"), "2026-01-02T03:04:07.678901Z");
    assert_eq!(metrics.take(), ["lock false", "lock slow", "lock true"]);
}

#[tokio::test(start_paused = true)]
async fn server_failures_are_retried() {
    let server = Server::with(held("", 15));
    server.fail(&[Fault::Refuse(500), Fault::Refuse(403), Fault::Hang]);
    Candidate::new(&server, "a").run_for(12.0).await;
    assert_eq!(
        server.log()[..5],
        [
            "0 GET 500",
            "2 GET 403",
            "4 GET 0",
            "11 GET 200",
            "11 PUT a 200"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn next_leader_waits_for_lease_expiry_after_crash() {
    let server = Server::new();
    let crash = Candidate::new(&server, "a").run_for(5.0);
    // Its clock is an hour ahead, which doesn't matter.
    let config = LeaderElectionConfig::default();
    let next = Candidate::with(&server, "b", config, "2026-01-02T04:04:05.678901Z");
    tokio::join!(crash, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        next.run_for(30.0).await;
    });
    let log = server.log();
    let last = log.iter().rposition(|line| line.contains("PUT a")).unwrap();
    let first = log.iter().position(|line| line.contains("PUT b")).unwrap();
    // Renewed at 4 s, seen at 5 s.
    assert_eq!(
        (log[last].as_str(), log[first].as_str()),
        ("4 PUT a 200", "21 PUT b 200")
    );
    assert_eq!(server.spec("leaseTransitions"), 1);
}

#[tokio::test(start_paused = true)]
async fn long_retry_after_does_not_delay_election() {
    let server = Server::new();
    server.fail(&[Fault::Postpone(600), Fault::Nothing, Fault::Postpone(600)]);
    Candidate::new(&server, "a").run_for(15.0).await;
    assert_eq!(
        server.log(),
        [
            "0 GET 503",
            "7 GET 404",
            "7 POST a 503",
            "14 GET 404",
            "14 POST a 201",
            "14 PUT a 200",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn short_retry_after_is_honored() {
    let server = Server::new();
    server.fail(&[Fault::Postpone(3)]);
    Candidate::new(&server, "a").run_for(3.5).await;
    assert_eq!(
        server.log(),
        ["0 GET 503", "3 GET 404", "3 POST a 201", "3 PUT a 200"]
    );
}

#[tokio::test(start_paused = true)]
async fn only_api_health_log_reports_rejected_credentials() {
    let log = CapturedLog::at(tracing::Level::INFO);
    let server = Server::new();
    server.fail(&[Fault::Refuse(401), Fault::Refuse(401), Fault::Refuse(500)]);
    Candidate::new(&server, "a").run_for(10.0).await;
    let lines = log.take();
    let failures: Vec<_> = lines.iter().filter(|it| it.starts_with("WARN")).collect();
    assert_eq!(failures.len(), 2, "{lines:#?}");
    assert!(
        failures[0].contains("rejects the credentials"),
        "{lines:#?}"
    );
    assert!(
        failures[1].contains("error retrieving the lease"),
        "{lines:#?}"
    );
    let ended = "INFO API server accepts the credentials again";
    assert!(lines.iter().any(|it| it.starts_with(ended)), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn short_lease_limits_calls_and_delivery() {
    let server = Server::new();
    server.fail_always(Fault::Hang);
    let config = LeaderElectionConfig {
        lease_duration: Duration::from_millis(1_900),
        renew_deadline: Duration::from_millis(1_500),
        retry_period: Duration::from_millis(300),
        ..LeaderElectionConfig::default()
    };
    let (transit_max, call_timeout) = (config.transit_max(), config.request_timeout());
    let candidate = Candidate::with(&server, "me", config, "2026-01-02T03:04:05Z");
    assert_eq!(candidate.elector.fence().transit_max(), transit_max);
    assert!(transit_max < Duration::from_secs(1));
    candidate.run_for(3.0).await;
    let next = (call_timeout + Duration::from_millis(300)).as_secs_f64();
    assert_eq!(
        server.log()[..2],
        ["0 GET 0".to_owned(), format!("{next} GET 0")]
    );
}
