//! How often a server that fails is asked.

use std::time::Duration;

use kube_test_control_plane::faults::{FaultAction, FaultError, RequestMatcher, WatchAction};
use kube_test_control_plane::route::Verb;
use tokio::time::sleep;

use crate::harness::Outfit;

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_tried_again_with_delays_that_double_up_to_a_minute() {
    let outfit = Outfit::start().await;
    sleep(Duration::from_secs(5)).await;
    let pods = || RequestMatcher::any().resource("pods");
    let broken = FaultAction::respond(FaultError::ServiceUnavailable);
    let id = outfit.faults().inject_always(pods(), broken);
    let mark = outfit.plane.server().clock().now();
    outfit
        .faults()
        .strike_open_watches(pods(), WatchAction::Cut);
    sleep(Duration::from_secs(600)).await;
    outfit.faults().remove(id);
    let audit = outfit.plane.server().audit();
    let lists = audit.matching(|entry| {
        entry.resource == "pods"
            && matches!(entry.verb, Verb::List | Verb::Watch)
            && entry.received >= mark
            && entry.user.ends_with(":statefulset-controller")
    });
    let delays: Vec<Duration> = lists
        .windows(2)
        .map(|pair| Duration::try_from(pair[1].received.duration_since(pair[0].received)).unwrap())
        .collect();
    // After the first delay, of at least 800 ms, the watch that was cut is opened again.
    let bases = [1600, 3200, 6400, 12_800, 25_600].map(Duration::from_millis);
    let longest = Duration::from_secs(30);
    let mut expected = bases.into_iter().chain(std::iter::repeat(longest));
    assert!((12..=24).contains(&delays.len()), "{delays:?}");
    for delay in &delays {
        let base = expected.next().unwrap();
        assert!(
            *delay >= base && *delay <= base * 2,
            "{delay:?} in {delays:?}"
        );
    }
}
