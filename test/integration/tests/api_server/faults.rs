//! Tests of rejected requests, lost requests and lost responses while a set starts.

use std::time::Duration;

use kube_test_control_plane::faults::{
    FaultAction, FaultError, FaultRule, RequestMatcher, Schedule, WatchAction,
};
use kube_test_control_plane::restart::Restart;
use kube_test_control_plane::route::Verb;
use tokio::time::sleep;

use crate::harness::{Fixture, assert_begin};

/// The control plane's own pods and nodes stay unaffected by faults.
fn clients() -> RequestMatcher {
    RequestMatcher::any().user("system:serviceaccount:kube-system:statefulset-controller")
}

/// Applies a fault to every request for `seconds` while three pods start, and checks that each is
/// created once. Returns the log lines about the server.
async fn create_under(action: FaultAction, probability: f64, seconds: u64) -> Vec<String> {
    let fixture = Fixture::start().await;
    fixture.create(3).await;
    sleep(Duration::from_secs(4)).await;
    fixture.take_lines();
    let when = Schedule::always().probability(probability);
    let id = fixture
        .faults()
        .add(FaultRule::new(clients(), action).when(when));
    // Open watches wouldn't notice the fault.
    fixture
        .faults()
        .apply_to_open_watches(clients(), WatchAction::Cut);
    sleep(Duration::from_secs(seconds)).await;
    assert!(fixture.faults().hits(id) > 0, "the fault hit no request");
    fixture.faults().remove(id);
    fixture.complete(3).await;
    nothing_was_lost(&fixture);
    fixture.take_lines()
}

#[track_caller]
fn nothing_was_lost(fixture: &Fixture) {
    assert_eq!(
        fixture.pod_writes(Verb::Create),
        ["web-0", "web-1", "web-2"]
    );
    assert_eq!(fixture.pod_writes(Verb::Delete), [""; 0]);
    fixture.plane.invariants().expect_none();
}

fn status(code: u16, reason: &str) -> FaultAction {
    FaultAction::respond(FaultError::Status {
        code,
        reason: reason.to_owned(),
        message: format!("fault of the test: {reason}"),
        details: None,
    })
}

#[tokio::test(start_paused = true)]
async fn failing_server_is_logged_once() {
    for action in [
        status(500, "InternalError"),
        FaultAction::respond(FaultError::leader_changed()),
        FaultAction::respond(FaultError::ServiceUnavailable),
        FaultAction::respond(FaultError::Timeout),
    ] {
        let lines = create_under(action, 1.0, 60).await;
        let server: Vec<_> = lines
            .iter()
            .filter(|line| line.contains(" API server "))
            .cloned()
            .collect();
        assert_begin(
            &server,
            &[
                "WARN API server does not serve lists or watches, trying again; see its log request=",
                "INFO API server serves lists and watches again after=",
            ],
        );
        // The set's own failures are few, each logged once.
        assert!(lines.len() <= 6, "{lines:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_requests_are_retried_without_a_log_line() {
    let busy = FaultAction::respond(FaultError::TooManyRequests {
        retry_after_seconds: 1,
    });
    // The fault hits half of the requests; each is sent up to eleven times.
    assert_begin(&create_under(busy, 0.5, 60).await, &[]);
}

/// Start of the log lines about a server that responds 429 to everything, and later recovers.
const OVERLOADED: [&str; 2] = [
    "WARN API server does not serve lists or watches, trying again; see its log request=watch ",
    "INFO API server serves lists and watches again after=1",
];

#[tokio::test(start_paused = true)]
async fn overload_without_retry_after_is_logged_once() {
    let busy = status(429, "TooManyRequests");
    assert_begin(&create_under(busy, 1.0, 1800).await, &OVERLOADED);
}

#[tokio::test(start_paused = true)]
async fn overload_with_retry_after_is_logged_once() {
    for seconds in [1, 60] {
        let busy = FaultAction::respond(FaultError::TooManyRequests {
            retry_after_seconds: seconds,
        });
        assert_begin(&create_under(busy, 1.0, 1800).await, &OVERLOADED);
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_credentials_are_logged_once() {
    let lines = create_under(status(401, "Unauthorized"), 1.0, 60).await;
    assert_begin(
        &lines,
        &[
            "WARN API server rejects the credentials, trying again; check the token",
            "INFO API server accepts the credentials again after=",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn dropped_connections_are_logged_once() {
    let lines = create_under(FaultAction::DropBeforeCommit, 1.0, 60).await;
    assert_begin(
        &lines,
        &[
            "WARN API server unreachable, trying again; check that it is up",
            "INFO API server reachable again after=",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn lost_responses_repeat_no_write() {
    for action in [FaultAction::DropBeforeCommit, FaultAction::CommitThenDrop] {
        let lines = create_under(action, 0.3, 120).await;
        // An intermittent fault is logged more than once, but not per request.
        assert!(lines.len() <= 40, "{} lines: {lines:#?}", lines.len());
    }
}

#[tokio::test(start_paused = true)]
async fn outage_is_logged_with_its_duration() {
    let fixture = Fixture::start().await;
    fixture.create(3).await;
    sleep(Duration::from_secs(4)).await;
    fixture.take_lines();
    fixture
        .faults()
        .outage()
        .begin_for(Duration::from_secs(300));
    sleep(Duration::from_secs(301)).await;
    fixture.complete(3).await;
    nothing_was_lost(&fixture);
    let lines = fixture.take_lines();
    let again = "INFO API server reachable again after=";
    assert_begin(
        &lines,
        &["WARN API server unreachable, trying again", again],
    );
    let seconds = lines[1][again.len()..].strip_suffix(" s").unwrap();
    let seconds: u64 = seconds.parse().unwrap();
    // A read that lost its connection is retried for some seconds before it fails, and the first
    // attempt after the outage comes within the longest delay.
    assert!((285..360).contains(&seconds), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn server_restarts_without_history_lose_nothing() {
    let fixture = Fixture::start().await;
    fixture.create(3).await;
    sleep(Duration::from_secs(4)).await;
    for down_for in [0, 5, 0, 20] {
        fixture.take_lines();
        let restart = Restart::default().down_for(Duration::from_secs(down_for));
        fixture.plane.server().restart(restart);
        sleep(Duration::from_secs(90)).await;
        let lines = fixture.take_lines();
        let relists = lines
            .iter()
            .filter(|line| line.starts_with("INFO listing again"));
        let relists = relists.count();
        assert!(relists <= 4 && lines.len() <= relists + 2, "{lines:#?}");
    }
    fixture.complete(3).await;
    nothing_was_lost(&fixture);
}

#[tokio::test(start_paused = true)]
async fn compaction_causes_a_new_list() {
    let fixture = Fixture::start().await;
    fixture.create(3).await;
    fixture.complete(3).await;
    fixture.take_lines();
    let expired = FaultError::Expired;
    let pods = clients().resource("pods");
    fixture
        .faults()
        .apply_to_open_watches(pods, WatchAction::Error(expired));
    fixture
        .admin
        .delete(
            &statefulset_client::resource::PODS,
            "default",
            "web-1",
            "{}".to_owned(),
        )
        .await
        .unwrap();
    sleep(Duration::from_secs(120)).await;
    fixture.complete(3).await;
    assert_begin(
        &fixture.take_lines(),
        &["INFO listing again resource=pods error="],
    );
    fixture.plane.invariants().expect_none();
}
