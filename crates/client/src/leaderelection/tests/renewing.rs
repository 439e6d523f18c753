//! Tests of renewing and losing the lease.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::super::{Ended, Lost};
use super::support::{Candidate, Fault, Server};

const NOT_RENEWED: Option<Ended<()>> = Some(Ended::Lost(Lost::NotRenewed {
    within: Duration::from_secs(10),
}));

fn taken_by(holder: &str) -> Ended<()> {
    let holder = holder.to_owned();
    Ended::Lost(Lost::Taken { holder })
}

/// Runs a candidate for `seconds`, and calls a closure in between.
async fn run(
    server: &Server,
    seconds: f64,
    moment: f64,
    action: impl FnOnce(&Server),
) -> Option<Ended<()>> {
    let candidate = Candidate::new(server, "a").run_for(seconds);
    let action = async {
        sleep(Duration::from_secs_f64(moment)).await;
        server.log();
        action(server);
    };
    tokio::join!(candidate, action).0
}

#[tokio::test(start_paused = true)]
async fn leader_renews_every_retry_period_without_get() {
    let server = Server::new();
    assert_eq!(run(&server, 7.0, 1.0, |_| {}).await, None);
    assert_eq!(server.log(), ["2 PUT a 200", "4 PUT a 200", "6 PUT a 200"]);
    assert_eq!(server.spec("acquireTime"), "2026-01-02T03:04:05.678901Z");
    assert_eq!(server.spec("renewTime"), "2026-01-02T03:04:11.678901Z");
    assert_eq!(server.spec("leaseTransitions"), 0);
}

#[tokio::test(start_paused = true)]
async fn leader_renews_lease_with_out_of_range_times() {
    let server = Server::new();
    let late = |server: &Server| {
        for member in ["acquireTime", "renewTime"] {
            server.change(|lease| lease["spec"][member] = json!("10000-01-01T11:59:59.000000Z"));
        }
    };
    assert_eq!(run(&server, 5.0, 1.0, late).await, None);
    assert_eq!(
        server.log(),
        ["2 PUT a 409", "2 GET 200", "2 PUT a 200", "4 PUT a 200"]
    );
    assert_eq!(server.spec("renewTime"), "2026-01-02T03:04:09.678901Z");
}

#[tokio::test(start_paused = true)]
async fn renewal_replaces_only_spec() {
    let server = Server::new();
    let decorate = |server: &Server| {
        server.change(|lease| {
            lease["metadata"]["labels"] = json!({"team": "a"});
            lease["metadata"]["annotations"] = json!({"x": "<&>"});
            lease["metadata"]["managedFields"] = json!([{"manager": "m", "time": null}]);
            lease["spec"]["strategy"] = json!("OldestEmulationVersion");
            lease["spec"]["preferredHolder"] = json!("b");
            lease["status"] = json!({"unknown": 1.50});
        });
    };
    assert_eq!(run(&server, 5.0, 1.0, decorate).await, None);
    assert_eq!(
        server.log(),
        ["2 PUT a 409", "2 GET 200", "2 PUT a 200", "4 PUT a 200"]
    );
    let lease = server.lease();
    assert_eq!(lease["metadata"]["labels"], json!({"team": "a"}));
    assert_eq!(lease["metadata"]["annotations"], json!({"x": "<&>"}));
    assert_eq!(
        lease["metadata"]["managedFields"],
        json!([{"manager": "m", "time": null}])
    );
    assert_eq!(lease["status"], json!({"unknown": 1.50}));
    let members: Vec<&String> = lease["spec"].as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "acquireTime",
            "holderIdentity",
            "leaseDurationSeconds",
            "leaseTransitions",
            "renewTime"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn leader_recovers_from_one_failed_renewal() {
    for (fault, code) in [
        (Fault::Refuse(409), 409),
        (Fault::Refuse(500), 500),
        (Fault::LoseResponse, 200),
        (Fault::Lose, 0),
    ] {
        let server = Server::new();
        let candidate = Candidate::new(&server, "a");
        let metrics = Arc::clone(&candidate.metrics);
        let fault = async {
            sleep(Duration::from_secs(1)).await;
            server.log();
            server.fail(&[fault]);
        };
        let (ended, ()) = tokio::join!(candidate.run_for(5.0), fault);
        assert_eq!(ended, None);
        assert_eq!(
            server.log(),
            [
                &format!("2 PUT a {code}"),
                "2 GET 200",
                "2 PUT a 200",
                "4 PUT a 200"
            ]
        );
        assert_eq!(server.spec("acquireTime"), "2026-01-02T03:04:05.678901Z");
        assert_eq!(server.spec("leaseTransitions"), 0);
        assert_eq!(metrics.take(), ["lock false", "lock true", "lock slow"]);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_renewal_is_retried_until_deadline() {
    let server = Server::new();
    let fail = |server: &Server| server.fail_always(Fault::Refuse(500));
    assert_eq!(run(&server, 60.0, 1.0, fail).await, NOT_RENEWED);
    // The attempt at the deadline, at 12 s, is too late.
    let expected: Vec<String> = [2, 4, 6, 8, 10]
        .iter()
        .flat_map(|at| [format!("{at} PUT a 500"), format!("{at} GET 500")])
        .collect();
    assert_eq!(server.log(), expected);
}

#[tokio::test(start_paused = true)]
async fn renewal_may_succeed_at_last_attempt() {
    let server = Server::new();
    let fail = |server: &Server| server.fail(&[Fault::Refuse(500); 9]);
    assert_eq!(run(&server, 30.0, 1.0, fail).await, None);
    let log = server.log();
    assert_eq!(
        log[8..12],
        ["10 PUT a 500", "10 GET 200", "10 PUT a 200", "12 PUT a 200"]
    );
}

#[tokio::test(start_paused = true)]
async fn silent_server_costs_lease_at_deadline() {
    let server = Server::new();
    let hang = |server: &Server| server.fail_always(Fault::Hang);
    assert_eq!(run(&server, 60.0, 1.0, hang).await, NOT_RENEWED);
    // Each request has a timeout of 5 s.
    assert_eq!(server.log(), ["2 PUT a 0", "7 GET 0"]);
}

#[tokio::test(start_paused = true)]
async fn expired_lease_is_read_before_renewal() {
    // Only a suspended machine goes 15 s without a renewal: that is longer than the renew deadline.
    let server = Server::new();
    let candidate = Candidate::new(&server, "a");
    let machine = Arc::clone(&candidate.machine);
    let slept = async {
        sleep(Duration::from_secs(1)).await;
        server.log();
        machine.sleep(Duration::from_secs(3600));
    };
    tokio::join!(candidate.run_for(3.0), slept);
    assert_eq!(server.log(), ["2 GET 200", "2 PUT a 200"]);
}

#[tokio::test(start_paused = true)]
async fn lease_with_other_holder_is_lost() {
    let server = Server::new();
    let steal = |server: &Server| {
        server.change(|lease| {
            lease["spec"]["holderIdentity"] = json!("b");
            lease["spec"]["leaseTransitions"] = json!(1);
        });
    };
    assert_eq!(run(&server, 60.0, 1.0, steal).await, Some(taken_by("b")));
    assert_eq!(server.log(), ["2 PUT a 409", "2 GET 200"]);
}

#[tokio::test(start_paused = true)]
async fn finished_rival_term_is_detected() {
    let server = Server::new();
    let pass_by = |server: &Server| {
        server.change(|lease| {
            lease["spec"]["holderIdentity"] = json!("");
            lease["spec"]["leaseTransitions"] = json!(1);
        });
    };
    assert_eq!(run(&server, 60.0, 1.0, pass_by).await, Some(taken_by("")));
}

#[tokio::test(start_paused = true)]
async fn emptied_or_deleted_lease_is_recovered() {
    let server = Server::new();
    let empty = |server: &Server| {
        server.change(|lease| lease["spec"]["holderIdentity"] = json!(""));
    };
    assert_eq!(run(&server, 5.0, 1.0, empty).await, None);
    assert_eq!(
        server.log(),
        ["2 PUT a 409", "2 GET 200", "2 PUT a 200", "4 PUT a 200"]
    );
    assert_eq!(server.spec("leaseTransitions"), 1);

    let server = Server::new();
    assert_eq!(run(&server, 5.0, 1.0, Server::remove).await, None);
    assert_eq!(
        server.log(),
        ["2 PUT a 404", "2 GET 404", "2 POST a 201", "4 PUT a 200"]
    );
    assert_eq!(server.spec("leaseTransitions"), 0);
    assert_ne!(server.spec("acquireTime"), Value::Null);
}
