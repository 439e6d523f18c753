//! Rules for watches.

use std::time::Duration;

use kube_test_control_plane::faults::{
    Count, EventMatcher, FaultError, RequestMatcher, Schedule, UnsoundAction, WatchAction,
    WatchRule,
};
use kube_test_control_plane::{ServerConfig, TestControlPlane};

use super::{WatchReader, create, delete};

fn rule(action: WatchAction) -> WatchRule {
    WatchRule::new(RequestMatcher::any().resource("configmaps"), action)
}

/// Starts a control plane with bookmarks every ten seconds.
async fn plane() -> TestControlPlane {
    let config = ServerConfig::default().bookmark_interval(Duration::from_secs(10));
    TestControlPlane::builder()
        .server_config(config)
        .start()
        .await
}

#[tokio::test(start_paused = true)]
async fn delayed_events_stay_in_order() {
    let plane = plane().await;
    let faults = plane.server().faults();
    let mut watch = WatchReader::open(&plane).await;
    let id = faults.add_watch_rule(rule(WatchAction::Delay(Duration::from_secs(5).into())));
    create(&plane, "a").await;
    assert_eq!(watch.take(2).await, ["nothing", "nothing"]);
    create(&plane, "b").await;
    assert_eq!(watch.take(2).await, ["nothing", "nothing"]);
    assert_eq!(watch.next().await, "ADDED a");
    assert_eq!(watch.next().await, "nothing");
    assert_eq!(watch.next().await, "ADDED b");
    assert_eq!(faults.hits(id), 1);
    assert!(faults.remove(id));
    create(&plane, "c").await;
    assert_eq!(watch.next().await, "ADDED c");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watch_lags_by_a_number_of_events() {
    let plane = plane().await;
    let faults = plane.server().faults();
    let mut watch = WatchReader::open(&plane).await;
    let id = faults.add_watch_rule(rule(WatchAction::HoldBack { events: 2 }));
    for name in ["a", "b", "c"] {
        create(&plane, name).await;
    }
    assert_eq!(watch.take(2).await, ["ADDED a", "nothing"]);
    create(&plane, "d").await;
    assert_eq!(watch.take(2).await, ["ADDED b", "nothing"]);
    faults.remove(id);
    assert_eq!(watch.take(3).await, ["ADDED c", "ADDED d", "nothing"]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn frozen_watch_sends_nothing_until_released() {
    let plane = plane().await;
    let faults = plane.server().faults();
    let mut frozen = WatchReader::open(&plane).await;
    let mut other = WatchReader::open_as(&plane, "other", "resourceVersion=1").await;
    assert_eq!(faults.open_watches().len(), 2);
    create(&plane, "a").await;
    let of_test = RequestMatcher::any().user_agent("test");
    let before_b = EventMatcher::any().name("b");
    let freeze = WatchRule::new(of_test, WatchAction::Freeze).before_event(before_b);
    let id = faults.add_watch_rule(freeze.clone());
    create(&plane, "b").await;
    delete(&plane, "a").await;
    assert_eq!(frozen.take(2).await, ["ADDED a", "nothing"]);
    assert_eq!(other.take(3).await, ["ADDED a", "ADDED b", "DELETED a"]);
    faults.remove(id);
    assert_eq!(frozen.take(2).await, ["ADDED b", "DELETED a"]);

    let deleted = EventMatcher::any().event_type("DELETED");
    faults.add_watch_rule(
        freeze
            .before_event(deleted)
            .lasting(Duration::from_secs(30)),
    );
    delete(&plane, "b").await;
    assert_eq!(frozen.next().await, "nothing");
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(frozen.next().await, "DELETED b");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watch_ending_frozen_drops_its_events() {
    let plane = plane().await;
    let revision = plane.server().store().revision();
    let query = format!("timeoutSeconds=5&resourceVersion={revision}");
    let mut watch = WatchReader::open_with(&plane, &query).await;
    plane
        .server()
        .faults()
        .add_watch_rule(rule(WatchAction::Freeze));
    create(&plane, "a").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(watch.next().await, "end");
    assert!(plane.server().faults().open_watches().is_empty());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watches_can_be_cut_closed_and_truncated() {
    let plane = plane().await;
    let faults = plane.server().faults();
    let mut number = 0;
    for (action, wanted) in [
        (WatchAction::Cut, ["broken", "end"]),
        (WatchAction::Close, ["end", "end"]),
        (
            WatchAction::Error(FaultError::Expired),
            ["ERROR Expired", "end"],
        ),
        (
            WatchAction::Error(FaultError::InternalError {
                message: "x".to_owned(),
            }),
            ["ERROR InternalError", "end"],
        ),
        (
            WatchAction::Error(FaultError::Overloaded {
                retry_after_seconds: 1,
            }),
            ["ERROR TooManyRequests", "end"],
        ),
        (WatchAction::Truncate, ["half", "end"]),
    ] {
        let mut watch = WatchReader::open(&plane).await;
        faults.clear();
        faults.add_watch_rule(rule(action.clone()).after_events(2));
        let mut seen = Vec::new();
        for _ in 0..3 {
            number += 1;
            create(&plane, &format!("m-{number}")).await;
            seen.push(watch.next().await);
        }
        assert!(seen[1].starts_with("ADDED"), "{action:?}: {seen:?}");
        assert_eq!(seen[2], wanted[0], "{action:?}");
        assert_eq!(watch.next().await, wanted[1], "{action:?}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropped_bookmarks_exclude_the_initial_one() {
    let plane = plane().await;
    create(&plane, "a").await;
    let faults = plane.server().faults();
    let id = faults.add_watch_rule(rule(WatchAction::DropBookmarks));
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = WatchReader::open_with(&plane, query).await;
    assert_eq!(watch.take(2).await, ["ADDED a", "BOOKMARK"]);
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(watch.next().await, "nothing");
    faults.remove(id);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(watch.next().await, "BOOKMARK");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn action_on_open_watches_skips_later_ones() {
    let plane = plane().await;
    let faults = plane.server().faults();
    let mut old = WatchReader::open(&plane).await;
    let any = RequestMatcher::any;
    let id = faults.apply_to_open_watches(any().resource("pods"), WatchAction::Cut);
    assert_eq!(old.next().await, "nothing");
    assert_eq!(faults.hits(id), 0);
    faults.apply_to_open_watches(any(), WatchAction::Cut);
    let mut new = WatchReader::open(&plane).await;
    assert_eq!(old.next().await, "broken");
    create(&plane, "a").await;
    assert_eq!(new.next().await, "ADDED a");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn schedule_counts_watches() {
    let plane = plane().await;
    let faults = plane.server().faults();
    faults.add_watch_rule(rule(WatchAction::Close).when(Schedule::times(1).skip(1)));
    let mut first = WatchReader::open(&plane).await;
    assert_eq!(first.next().await, "nothing");
    let mut second = WatchReader::open(&plane).await;
    assert_eq!(second.next().await, "end");
    let mut third = WatchReader::open(&plane).await;
    assert_eq!(third.next().await, "nothing");
    faults.clear();
    let between = Count::Between { min: 1, max: 3 };
    faults.add_watch_rule(rule(WatchAction::Close).after_events(between));
    for name in ["a", "b", "c"] {
        create(&plane, name).await;
    }
    let seen = third.take(4).await;
    let events = seen.iter().take_while(|event| *event != "end").count();
    assert!((1..=3).contains(&events), "{seen:?}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unsound_actions_drop_and_repeat_events() {
    let plane = plane().await;
    let faults = plane.server().faults();
    let mut watch = WatchReader::open(&plane).await;
    let unsound = |action| rule(WatchAction::Unsound(action));
    faults.add_watch_rule(
        unsound(UnsoundAction::DropEvent).before_event(EventMatcher::any().name("b")),
    );
    faults.add_watch_rule(
        unsound(UnsoundAction::DuplicateEvent).before_event(EventMatcher::any().name("c")),
    );
    for name in ["a", "b", "c", "d"] {
        create(&plane, name).await;
    }
    let seen = watch.take(5).await;
    assert_eq!(
        seen,
        ["ADDED a", "ADDED c", "ADDED c", "ADDED d", "nothing"]
    );
    plane.stop().await;
}
