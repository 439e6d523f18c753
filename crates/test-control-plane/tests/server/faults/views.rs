//! Stale reads.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::faults::{RequestMatcher, View, ViewRule};
use serde_json::Value;
use tokio::time::Instant;

use super::{MAPS, WatchReader, create, delete};

/// Returns the names in a list and its revision.
async fn list(plane: &TestControlPlane, agent: &str, query: &str) -> (Vec<String>, u64) {
    let path = format!("{MAPS}?{query}");
    let server = plane.server();
    let (code, list) = server
        .call_json(Method::GET, &path, agent, &Value::Null)
        .await;
    assert_eq!(code, 200, "{list}");
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    let names = list["items"].as_array().unwrap().iter().map(name).collect();
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    (names, revision.parse().unwrap())
}

fn frozen(plane: &TestControlPlane, agent: &str) -> ViewRule {
    let now = plane.server().store().revision();
    ViewRule::new(RequestMatcher::any().user_agent(agent), View::FrozenAt(now))
}

#[tokio::test(start_paused = true)]
async fn frozen_client_sees_the_old_state_by_default() {
    let plane = TestControlPlane::builder().start().await;
    let faults = plane.server().faults();
    create(&plane, "a").await;
    let rule = frozen(&plane, "old");
    let id = faults.add_view(rule);
    let revision = plane.server().store().revision();
    create(&plane, "b").await;
    delete(&plane, "a").await;

    let any = "resourceVersion=0";
    assert_eq!(
        list(&plane, "old", any).await,
        (vec!["a".to_owned()], revision)
    );
    let newest = (vec!["b".to_owned()], revision + 2);
    assert_eq!(list(&plane, "old", "").await, newest);
    assert_eq!(list(&plane, "other", any).await, newest);
    for (path, wanted) in [
        ("a?resourceVersion=0", 200),
        ("b?resourceVersion=0", 404),
        ("b", 200),
    ] {
        let path = format!("{MAPS}/{path}");
        let server = plane.server();
        let (code, _) = server
            .call_json(Method::GET, &path, "old", &Value::Null)
            .await;
        assert_eq!(code, wanted, "{path}");
    }
    faults.remove(id);
    assert_eq!(list(&plane, "old", any).await, newest);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn read_waits_for_a_hidden_version() {
    let plane = TestControlPlane::builder().start().await;
    let faults = plane.server().faults();
    let id = faults.add_view(frozen(&plane, "old"));
    create(&plane, "a").await;
    let newest = plane.server().store().revision();
    let path = format!("{MAPS}?resourceVersion={newest}");
    let begin = Instant::now();
    let server = plane.server();
    let (code, status) = server
        .call_json(Method::GET, &path, "old", &Value::Null)
        .await;
    assert_eq!(code, 504);
    let message = status["message"].as_str().unwrap();
    let wanted = format!(
        "Too large resource version: {newest}, current: {}",
        newest - 1
    );
    assert!(message.ends_with(&wanted), "{message}");
    assert_eq!(begin.elapsed(), Duration::from_secs(3));

    let query = format!("resourceVersion={newest}");
    let thaw = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        faults.remove(id);
    };
    let ((names, _), ()) = tokio::join!(list(&plane, "old", &query), thaw);
    assert_eq!(names, ["a"]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unfrozen_watch_resumes_at_its_position() {
    let plane = TestControlPlane::builder().start().await;
    let faults = plane.server().faults();
    let mut open = WatchReader::open_as(&plane, "old", "resourceVersion=0").await;
    create(&plane, "a").await;
    let id = faults.add_view(frozen(&plane, "old"));
    create(&plane, "b").await;
    let mut new = WatchReader::open_as(&plane, "old", "").await;
    assert_eq!(new.take(2).await, ["ADDED a", "nothing"]);
    assert_eq!(open.take(2).await, ["ADDED a", "nothing"]);
    let stream = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                  &allowWatchBookmarks=true";
    let any = format!("{stream}&resourceVersion=0");
    let mut any = WatchReader::open_as(&plane, "old", &any).await;
    assert_eq!(any.take(3).await, ["ADDED a", "BOOKMARK", "nothing"]);
    // A watch from the newest state waits in vain.
    let mut fresh = WatchReader::open_as(&plane, "old", stream).await;
    assert_eq!(fresh.next().await, "ERROR Timeout");
    faults.remove(id);
    for watch in [&mut open, &mut new, &mut any] {
        assert_eq!(watch.take(2).await, ["ADDED b", "nothing"]);
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn client_lags_by_a_number_of_revisions() {
    let plane = TestControlPlane::builder().start().await;
    let faults = plane.server().faults();
    let maps = RequestMatcher::any().resource("configmaps");
    faults.add_view(ViewRule::new(maps.clone(), View::Behind(2)));
    let mut watch = WatchReader::open(&plane).await;
    for name in ["a", "b", "c"] {
        create(&plane, name).await;
    }
    assert_eq!(watch.take(2).await, ["ADDED a", "nothing"]);
    let (names, _) = list(&plane, "test", "resourceVersion=0").await;
    assert_eq!(names, ["a"]);
    delete(&plane, "b").await;
    assert_eq!(watch.take(2).await, ["ADDED b", "nothing"]);
    faults.add_view(ViewRule::new(maps, View::Behind(100_000)));
    let server = plane.server();
    let path = format!("{MAPS}?resourceVersion=0");
    let (code, list) = server
        .call_json(Method::GET, &path, "x", &Value::Null)
        .await;
    assert_eq!(
        (code, list["items"].as_array().map(Vec::len)),
        (200, Some(0))
    );
    faults.clear();
    assert_eq!(watch.take(2).await, ["ADDED c", "DELETED b"]);
    plane.stop().await;
}
