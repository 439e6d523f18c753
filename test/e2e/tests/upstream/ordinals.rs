//! Start ordinals, initial and changed.

use e2e::Cluster;
use e2e::manifests::{plain, starting_at};
use serde_json::{Value, json};

/// Creates a set and waits for its pods, changes its ordinals and waits for the new pods.
async fn assert_ordinals_move(
    namespace: &str,
    set: Value,
    before: &[u32],
    change: Value,
    after: &[u32],
) {
    let cluster = Cluster::start(namespace).await;
    let ss = cluster.create(&set).await;
    let counts = |pods: &[u32]| [("replicas", pods.len()), ("readyReplicas", pods.len())];
    ss.until_named(before).await;
    ss.until_counts(&counts(before)).await;
    ss.until_named(before).await;
    ss.change(|set| {
        for (member, value) in change.as_object().into_iter().flatten() {
            set["spec"][member] = value.clone();
        }
    })
    .await;
    ss.until_named(after).await;
    ss.until_counts(&counts(after)).await;
    ss.until_named(after).await;
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_setting_start_ordinal() {
    let change = json!({"ordinals": {"start": 2}, "replicas": 3});
    assert_ordinals_move("setting", plain("ss", 2), &[0, 1], change, &[2, 3, 4]).await;
}

#[tokio::test(start_paused = true)]
async fn test_increasing_start_ordinal() {
    let set = starting_at(plain("ss", 2), 2);
    let change = json!({"ordinals": {"start": 4}});
    assert_ordinals_move("increasing", set, &[2, 3], change, &[4, 5]).await;
}

#[tokio::test(start_paused = true)]
async fn test_decreasing_start_ordinal() {
    let set = starting_at(plain("ss", 2), 3);
    let change = json!({"ordinals": {"start": 2}});
    assert_ordinals_move("decreasing", set, &[3, 4], change, &[2, 3]).await;
}

#[tokio::test(start_paused = true)]
async fn test_removing_start_ordinal() {
    let set = starting_at(plain("ss", 2), 3);
    let change = json!({"ordinals": null});
    assert_ordinals_move("removing", set, &[3, 4], change, &[0, 1]).await;
}
