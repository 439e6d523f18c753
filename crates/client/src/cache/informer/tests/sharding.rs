//! Tests of shards: objects of other shards never reach the cache.

use serde_json::json;

use super::*;

/// An object in a namespace of the other shard, decodable or not.
fn foreign(version: &str, is_decodable: bool) -> String {
    let labels = if is_decodable { json!({}) } else { json!(7) };
    let metadata = json!({
        "namespace": "a", "name": "x", "resourceVersion": version, "labels": labels,
    });
    json!({"metadata": metadata}).to_string()
}

#[tokio::test(start_paused = true)]
async fn objects_of_other_shards_are_dropped() {
    let shard: Shard = "0/2".parse().unwrap();
    assert!(shard.contains("ns") && !shard.contains("a"));
    let config = InformerConfig {
        shard: Some(shard),
        ..InformerConfig::default()
    };
    let foreign_events = [
        event("ADDED", &foreign("11", true)),
        event("MODIFIED", &foreign("12", false)),
        event("MODIFIED", &object("own", "13")),
        event("DELETED", &foreign("14", true)),
        event("DELETED", &foreign("15", false)),
        Step::End,
    ];
    let script = vec![
        list(
            "10",
            &[foreign("3", true), foreign("4", false), object("own", "5")],
        ),
        Answer::Watch(foreign_events.into()),
        Answer::Watch(vec![Step::Hang]),
    ];
    let (heard, asked) = run_with(config, 5, script).await;
    assert_eq!(heard, ["+own:5 initial @10", "*own:5>13 @13"]);
    assert!(asked[0].contains("shardSelector=shardRange%28object.metadata.namespace"));
    // The position moves with the events of all shards.
    assert_eq!(asked[1..], ["watch from 10", "watch from 15"]);
}
