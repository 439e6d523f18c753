//! Status and error of failed syncs, and syncs of terminating sets.

use statefulset_client::cache::indexer::CachedObject as _;

use super::*;

#[tokio::test]
async fn failed_sync_still_writes_the_status() {
    let set = web();
    let cluster = cluster(&set);
    cluster.put(&pod(&set, 0));
    cluster.objects.create_pod_tracker.fail_after(0, boom);
    let outcome = cluster.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), "boom");
    assert_eq!(outcome.status.unwrap().replicas, 1);
    assert_eq!(cluster.counts(), [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn failed_revision_write_stops_the_sync_first() {
    let cluster = cluster(&web());
    cluster.history.create_tracker.fail_after(0, boom);
    let outcome = cluster.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), "boom");
    assert_eq!((outcome.status, outcome.waiting), (None, None));
    assert!(cluster.pods().is_empty());
    assert_eq!(cluster.status.update_tracker.requests(), 0);
}

#[tokio::test]
async fn invalid_revision_stops_the_sync_without_status() {
    let set = web().with("status.currentRevision", "web-bad");
    let cluster = cluster(&set);
    let bad = builders::revision(&set.build(), "web-bad", 1, "7");
    let bad: Value = serde_json::from_str(&bad.text()).unwrap();
    cluster.history.revisions.put(bad);
    let outcome = cluster.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), "invalid JSON document");
    assert!(outcome.status.is_none());
    assert!(cluster.pods().is_empty());
    assert_eq!(cluster.status.update_tracker.requests(), 0);
}

#[tokio::test]
async fn invalid_selector_stops_the_sync_at_once() {
    let set = web().with(
        "spec.selector.matchExpressions",
        json!([{"key": "a", "operator": "Like"}]),
    );
    let cluster = cluster(&set);
    let outcome = cluster.sync().await;
    assert_eq!(
        outcome.error.unwrap().to_string(),
        r#""Like" is not a valid label selector operator"#
    );
    assert!(outcome.status.is_none());
    assert_eq!(cluster.history.create_tracker.requests(), 0);
}

#[tokio::test]
async fn terminating_set_only_updates_its_status() {
    for parallel in [false, true] {
        let set = web().replicas(1).terminating().claim_template("data");
        let set = if parallel { set.parallel() } else { set };
        let cluster = cluster(&set);
        cluster.put(&pod(&set, 0).phase("Failed"));
        cluster.put(&pod(&set, 5));
        // This pod has no ordinal, but counts.
        cluster.put(&pod(&set, 6).with("metadata.name", "web-2147483648"));
        assert_eq!(cluster.step().await, Some(Waiting::SetDeleted));
        assert_eq!(cluster.counts(), [3, 2, 2, 3, 3]);
        assert_eq!(cluster.pods().len(), 3);
        assert!(cluster.recorder.is_empty());
        assert_eq!(cluster.history.create_tracker.requests(), 1, "as upstream");
    }
}

#[tokio::test]
async fn pod_without_slot_is_neither_counted_nor_written() {
    let set = web().replicas(1);
    let cluster = cluster(&set);
    cluster.put(&pod(&set, 0));
    for (ordinal, name) in [(6, "web-2147483648"), (7, "bar")] {
        let without_volumes = pod(&set, ordinal).with("spec.volumes", json!([]));
        cluster.put(&without_volumes.with("metadata.name", name));
    }
    assert_eq!(cluster.step().await, None);
    assert_eq!(cluster.counts(), [1, 1, 1, 1, 1]);
    assert_eq!(cluster.pods().len(), 3);
    assert_eq!(cluster.objects.update_pod_tracker.requests(), 0);
    assert_eq!(cluster.objects.delete_pod_tracker.requests(), 0);
}

#[tokio::test]
async fn unencodable_template_fails_its_sets_sync() {
    let text = web()
        .text()
        .replace(r#""terminationGracePeriodSeconds":30"#, r#""future":1e400"#);
    assert!(text.contains("1e400"));
    let cluster = Cluster::new(FeatureGates::default());
    cluster.store(&StatefulSet::decode(&text).unwrap());
    let error = cluster.sync().await.error.unwrap().to_string();
    assert!(
        error.starts_with("cannot read spec.template: number out of range"),
        "{error}"
    );
    assert!(cluster.pods().is_empty());
}

#[tokio::test]
async fn unencodable_claim_template_blocks_the_pod() {
    let set = web().claim_template("data");
    let text = set
        .text()
        .replace(r#""storage":"1Gi""#, r#""storage":1e400"#);
    assert!(text.contains("1e400"));
    let cluster = Cluster::new(FeatureGates::default());
    cluster.store(&StatefulSet::decode(&text).unwrap());
    let error = cluster.sync().await.error.unwrap().to_string();
    let expected =
        "failed to create PVC data-web-0: cannot read claim template data: number out of range";
    assert!(error.starts_with(expected), "{error}");
    assert!(cluster.pods().is_empty());
    assert_eq!(cluster.recorder.drain().len(), 2);
}

#[tokio::test]
async fn foreign_conditions_are_kept() {
    let conditions = json!([{"type": "Theirs", "status": "True"}]);
    let set = web()
        .with("status.conditions", conditions.clone())
        .with("status.future", 7);
    let cluster = cluster(&set);
    cluster.step().await;
    let status = serde_json::to_value(&*cluster.set().status).unwrap();
    assert_eq!(status["conditions"], conditions);
    assert!(status.get("future").is_none(), "{status}");
    assert_eq!(status["observedGeneration"], 1);
}

#[tokio::test]
async fn batch_failures_are_joined_into_one_error() {
    let set = web().replicas(3).parallel().claim_template("data");
    let cluster = cluster(&set);
    for ordinal in [1, 2] {
        let claim = builders::claim(&set.build(), "data", ordinal).terminating();
        cluster.objects.claims.put(claim.json());
    }
    let error = cluster.sync().await.error.unwrap().to_string();
    let mut texts: Vec<&str> = error.trim_matches(['[', ']']).split(", ").collect();
    texts.sort_unstable();
    assert_eq!(
        texts,
        [
            "pvc data-web-1 is being deleted",
            "pvc data-web-2 is being deleted"
        ]
    );
    assert_eq!(cluster.pods(), ["web-0"]);
}

#[tokio::test]
async fn events_reference_the_sets_key() {
    let cluster = cluster(&web());
    cluster.step().await;
    let events = cluster.recorder.drain_with_references();
    assert_eq!(events[0].0, cluster.set().object_reference());
    assert_eq!(cluster.set().key(), ObjectKey::new("ns", "web"));
}
