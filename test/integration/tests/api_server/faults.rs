//! Answers that are refused, lost or never come, in the middle of a roll-out.

use std::time::Duration;

use kube_test_control_plane::faults::{
    FaultAction, FaultError, FaultRule, RequestMatcher, Schedule, WatchAction,
};
use kube_test_control_plane::restart::Restart;
use kube_test_control_plane::route::Verb;
use tokio::time::sleep;

use crate::harness::{Outfit, assert_begin};

/// The control plane's own pods and nodes go on, whatever clients see.
fn clients() -> RequestMatcher {
    RequestMatcher::any().user("system:serviceaccount:kube-system:statefulset-controller")
}

/// Puts a fault over every request for so many seconds while three pods come up, and checks that
/// each is made once. Returns what was logged of the server.
async fn roll_out_under(action: FaultAction, probability: f64, seconds: u64) -> Vec<String> {
    let outfit = Outfit::start().await;
    outfit.create(3).await;
    sleep(Duration::from_secs(4)).await;
    outfit.take_lines();
    let when = Schedule::always().probability(probability);
    let id = outfit
        .faults()
        .add(FaultRule::new(clients(), action).when(when));
    // Those that are open would not notice.
    outfit
        .faults()
        .strike_open_watches(clients(), WatchAction::Cut);
    sleep(Duration::from_secs(seconds)).await;
    assert!(outfit.faults().hits(id) > 0, "nothing was struck");
    outfit.faults().remove(id);
    outfit.complete(3).await;
    nothing_is_lost(&outfit);
    outfit.take_lines()
}

#[track_caller]
fn nothing_is_lost(outfit: &Outfit) {
    assert_eq!(outfit.pod_writes(Verb::Create), ["web-0", "web-1", "web-2"]);
    assert_eq!(outfit.pod_writes(Verb::Delete), [""; 0]);
    outfit.plane.invariants().expect_none();
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
async fn a_server_that_fails_every_request_is_told_once() {
    for action in [
        status(500, "InternalError"),
        FaultAction::respond(FaultError::leader_changed()),
        FaultAction::respond(FaultError::ServiceUnavailable),
        FaultAction::respond(FaultError::Timeout),
    ] {
        let lines = roll_out_under(action, 1.0, 60).await;
        let server: Vec<_> = lines
            .iter()
            .filter(|line| line.contains(" API server "))
            .cloned()
            .collect();
        assert_begin(
            &server,
            &[
                "WARN API server fails to answer, trying again; see its log request=",
                "INFO API server answers again after=",
            ],
        );
        // The set's own failures are few, each told once.
        assert!(lines.len() <= 6, "{lines:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_to_wait_is_waited_for() {
    let busy = FaultAction::respond(FaultError::TooManyRequests {
        retry_after_seconds: 1,
    });
    // Half of the requests are struck, each is sent up to eleven times.
    assert_begin(&roll_out_under(busy, 0.5, 60).await, &[]);
}

/// How the lines of a server begin that answers everything with 429 and then no longer.
const OVERLOADED: [&str; 2] = [
    "WARN API server fails to answer, trying again; see its log request=watch ",
    "INFO API server answers again after=1",
];

#[tokio::test(start_paused = true)]
async fn a_server_that_is_overloaded_for_long_and_names_no_time_is_told_once() {
    let busy = status(429, "TooManyRequests");
    assert_begin(&roll_out_under(busy, 1.0, 1800).await, &OVERLOADED);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_to_wait_for_longer_than_a_request_is_sent_again_is_told_once() {
    for seconds in [1, 60] {
        let busy = FaultAction::respond(FaultError::TooManyRequests {
            retry_after_seconds: seconds,
        });
        assert_begin(&roll_out_under(busy, 1.0, 1800).await, &OVERLOADED);
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_for_a_while_are_told_once() {
    let lines = roll_out_under(status(401, "Unauthorized"), 1.0, 60).await;
    assert_begin(
        &lines,
        &[
            "WARN API server does not accept the credentials, trying again; check the token",
            "INFO API server accepts the credentials again after=",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn connections_that_all_drop_are_told_once() {
    let lines = roll_out_under(FaultAction::DropBeforeCommit, 1.0, 60).await;
    assert_begin(
        &lines,
        &[
            "WARN API server unreachable, trying again; check that it is up",
            "INFO API server reachable again after=",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn answers_that_get_lost_now_and_then_repeat_no_write() {
    for action in [FaultAction::DropBeforeCommit, FaultAction::CommitThenDrop] {
        let lines = roll_out_under(action, 0.3, 120).await;
        // It comes and goes, so it is told more than once, but not for each request.
        assert!(lines.len() <= 40, "{} lines: {lines:#?}", lines.len());
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_with_its_length() {
    let outfit = Outfit::start().await;
    outfit.create(3).await;
    sleep(Duration::from_secs(4)).await;
    outfit.take_lines();
    outfit.faults().outage().begin_for(Duration::from_secs(300));
    sleep(Duration::from_secs(301)).await;
    outfit.complete(3).await;
    nothing_is_lost(&outfit);
    let lines = outfit.take_lines();
    let again = "INFO API server reachable again after=";
    assert_begin(
        &lines,
        &["WARN API server unreachable, trying again", again],
    );
    let seconds = lines[1][again.len()..].strip_suffix(" s").unwrap();
    let seconds: u64 = seconds.parse().unwrap();
    // A read that lost its connection is sent again for some seconds before it counts as failed,
    // and the next try after the end comes within the longest delay.
    assert!((285..360).contains(&seconds), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn restarts_that_forget_all_events_lose_nothing() {
    let outfit = Outfit::start().await;
    outfit.create(3).await;
    sleep(Duration::from_secs(4)).await;
    for down_for in [0, 5, 0, 20] {
        outfit.take_lines();
        outfit.plane.server().restart(Restart {
            down_for: Duration::from_secs(down_for),
            keep_events: false,
        });
        sleep(Duration::from_secs(90)).await;
        let lines = outfit.take_lines();
        let relists = lines
            .iter()
            .filter(|line| line.starts_with("INFO listing again"));
        let relists = relists.count();
        assert!(relists <= 4 && lines.len() <= relists + 2, "{lines:#?}");
    }
    outfit.complete(3).await;
    nothing_is_lost(&outfit);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_leads_to_a_new_list() {
    let outfit = Outfit::start().await;
    outfit.create(3).await;
    outfit.complete(3).await;
    outfit.take_lines();
    let expired = FaultError::Expired;
    let pods = clients().resource("pods");
    outfit
        .faults()
        .strike_open_watches(pods, WatchAction::Error(expired));
    outfit
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
    outfit.complete(3).await;
    assert_begin(
        &outfit.take_lines(),
        &["INFO listing again resource=pods error="],
    );
    outfit.plane.invariants().expect_none();
}
