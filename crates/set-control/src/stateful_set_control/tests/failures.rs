//! Status and error of failed syncs, and syncs of terminating sets.

use statefulset_client::cache::indexer::CachedObject as _;

use super::*;

#[tokio::test]
async fn failed_sync_still_writes_the_status() {
    let set = web();
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0));
    world.fail(Call::CreatePod, 0);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), INJECTED);
    assert_eq!(outcome.status.unwrap().replicas, 1);
    assert_eq!(world.counts(), Counts::all(1));
}

#[tokio::test]
async fn failed_revision_write_stops_the_sync_first() {
    let mut world = world(&web());
    world.fail(Call::CreateRevision, 0);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), INJECTED);
    assert_eq!((outcome.status, outcome.waiting), (None, None));
    assert!(world.pod_names().is_empty());
    assert_eq!(world.requests(Call::UpdateStatus), 0);
}

#[tokio::test]
async fn invalid_revision_stops_the_sync_without_status() {
    let set = web().with("status.currentRevision", "web-bad");
    let mut world = world(&set);
    let bad = builders::revision(&set.build(), "web-bad", 1, "7");
    world.put_revision(&bad);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), "invalid JSON document");
    assert!(outcome.status.is_none());
    assert!(world.pod_names().is_empty());
    assert_eq!(world.requests(Call::UpdateStatus), 0);
}

#[tokio::test]
async fn invalid_selector_stops_the_sync_at_once() {
    let set = web().with(
        "spec.selector.matchExpressions",
        json!([{"key": "a", "operator": "Like"}]),
    );
    let mut world = world(&set);
    let outcome = world.sync_pods(&[]).await;
    assert_eq!(
        outcome.error.unwrap().to_string(),
        r#""Like" is not a valid label selector operator"#
    );
    assert!(outcome.status.is_none());
    assert_eq!(world.requests(Call::CreateRevision), 0);
}

#[tokio::test]
async fn terminating_set_only_updates_its_status() {
    for parallel in [false, true] {
        let set = web().replicas(1).terminating().claim_template("data");
        let set = if parallel { set.parallel() } else { set };
        let mut world = world(&set);
        world.put_pod(&pod(&set, 0).phase("Failed"));
        world.put_pod(&pod(&set, 5));
        // This pod has no ordinal, but counts.
        world.put_pod(&pod(&set, 6).with("metadata.name", "web-2147483648"));
        assert_eq!(world.step().await, Some(Waiting::SetDeleted));
        assert_eq!(world.counts(), Counts::all(3).ready(2).available(2));
        assert_eq!(world.pod_names().len(), 3);
        assert!(world.recorder.is_empty());
        assert_eq!(world.requests(Call::CreateRevision), 1, "as upstream");
    }
}

#[tokio::test]
async fn pod_without_slot_is_neither_counted_nor_written() {
    let set = web().replicas(1);
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0));
    for (ordinal, name) in [(6, "web-2147483648"), (7, "bar")] {
        let without_volumes = pod(&set, ordinal).with("spec.volumes", json!([]));
        world.put_pod(&without_volumes.with("metadata.name", name));
    }
    assert_eq!(world.step().await, None);
    assert_eq!(world.counts(), Counts::all(1));
    assert_eq!(world.pod_names().len(), 3);
    assert_eq!(world.requests(Call::UpdatePod), 0);
    assert_eq!(world.requests(Call::DeletePod), 0);
}

#[tokio::test]
async fn unencodable_template_fails_its_sets_sync() {
    let text = web()
        .text()
        .replace(r#""terminationGracePeriodSeconds":30"#, r#""future":1e400"#);
    assert!(text.contains("1e400"));
    let set = StatefulSet::decode(&text).unwrap();
    let mut world = World::new(set, FeatureGates::default());
    let error = world.sync_error().await;
    assert!(
        error.starts_with("cannot read spec.template: number out of range"),
        "{error}"
    );
    assert!(world.pod_names().is_empty());
}

#[tokio::test]
async fn unencodable_claim_template_blocks_the_pod() {
    let set = web().claim_template("data");
    let text = set
        .text()
        .replace(r#""storage":"1Gi""#, r#""storage":1e400"#);
    assert!(text.contains("1e400"));
    let set = StatefulSet::decode(&text).unwrap();
    let mut world = World::new(set, FeatureGates::default());
    let error = world.sync_error().await;
    let expected =
        "failed to create PVC data-web-0: cannot read claim template data: number out of range";
    assert!(error.starts_with(expected), "{error}");
    assert!(world.pod_names().is_empty());
    assert_eq!(world.events().len(), 2);
}

#[tokio::test]
async fn foreign_conditions_are_kept() {
    let conditions = json!([{"type": "Theirs", "status": "True"}]);
    let set = web()
        .with("status.conditions", conditions.clone())
        .with("status.future", 7);
    let mut world = world(&set);
    world.step().await;
    let status = serde_json::to_value(&*world.set.status).unwrap();
    assert_eq!(status["conditions"], conditions);
    assert!(status.get("future").is_none(), "{status}");
    assert_eq!(status["observedGeneration"], 1);
}

#[tokio::test]
async fn batch_failures_are_joined_into_one_error() {
    let set = web().replicas(3).parallel().claim_template("data");
    let mut world = world(&set);
    for ordinal in [1, 2] {
        let claim = builders::claim(&set.build(), "data", ordinal).terminating();
        world.put_claim(&claim);
    }
    let error = world.sync_error().await;
    let mut texts: Vec<&str> = error.trim_matches(['[', ']']).split(", ").collect();
    texts.sort_unstable();
    assert_eq!(
        texts,
        [
            "pvc data-web-1 is being deleted",
            "pvc data-web-2 is being deleted"
        ]
    );
    assert_eq!(world.pod_names(), ["web-0"]);
}

#[tokio::test]
async fn events_reference_the_sets_key() {
    let mut world = world(&web());
    world.step().await;
    let events = world.recorder.drain_with_references();
    assert_eq!(events[0].0, world.set.object_reference());
    assert_eq!(world.set.key(), ObjectKey::new("ns", "web"));
}
