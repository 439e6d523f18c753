//! API of sets: scale, collections, status.

use e2e::manifests::{plain, probed, stateful_set};
use e2e::{Cluster, SET_PATIENCE};
use futures::StreamExt as _;
use integration::space::Patch;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use statefulset_client::resource::STATEFUL_SETS;

#[tokio::test(start_paused = true)]
async fn test_should_have_a_working_scale_subresource() {
    let cluster = Cluster::start("scale").await;
    let space = cluster.space();
    let ss = cluster.create(&probed(plain("ss", 1))).await;
    ss.until_ready(1).await;
    ss.until_counts(&[("replicas", 1)]).await;
    let mut scale = space.find(&STATEFUL_SETS, "ss", "scale").await.unwrap();
    assert_eq!(scale["spec"]["replicas"], 1);
    assert_eq!(scale["status"]["replicas"], 1);

    let metadata = scale["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    scale["spec"]["replicas"] = 2.into();
    let put = space.put(&STATEFUL_SETS, "ss", "scale", &scale).await;
    assert_eq!(put.unwrap()["spec"]["replicas"], 2);
    assert_eq!(ss.get().await["spec"]["replicas"], 2);
    ss.until_ready(2).await;

    let patch = json!({"spec": {"replicas": 4}});
    space
        .patch(&STATEFUL_SETS, "ss", "scale", Patch::Strategic, &patch)
        .await;
    assert_eq!(ss.get().await["spec"]["replicas"], 4);
    ss.until_ready(4).await;
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_should_list_patch_and_delete_a_collection_of_stateful_sets() {
    const PAUSE: &str = "registry.k8s.io/pause:3.10.1";
    const SELECTOR: &str = "test-ss=patched";
    let cluster = Cluster::start("collection").await;
    let space = cluster.space();
    let labels = [("name", "sample-pod"), ("pod", "agnhost")];
    let set = probed(stateful_set("test-ss", 1, &[], &[], &labels));
    let ss = cluster.create(&set).await;
    ss.until_ready(1).await;

    let version = |set: &Value| -> u64 {
        let version = set["metadata"]["resourceVersion"].as_str();
        version.unwrap().parse().unwrap()
    };
    let before = version(&ss.get().await);
    let patch = json!({
        "metadata": {"labels": {"test-ss": "patched"}},
        "spec": {
            "replicas": 2,
            "template": {"spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "test-ss", "image": PAUSE}],
            }},
        },
    });
    let patched = space
        .patch(&STATEFUL_SETS, "test-ss", "", Patch::Strategic, &patch)
        .await;
    assert!(version(&patched) > before);
    let set = ss.get().await;
    assert_eq!(set["spec"]["replicas"], 2);
    let containers = set["spec"]["template"]["spec"]["containers"].as_array();
    let containers = containers.unwrap();
    assert_eq!(
        (containers.len(), &containers[0]["image"]),
        (2, &json!(PAUSE))
    );
    ss.until_ready(2).await;

    let listed = space.list_everywhere(&STATEFUL_SETS, SELECTOR).await;
    assert_eq!(listed.len(), 1);
    space.delete_all(&STATEFUL_SETS, SELECTOR, 1).await;
    let gone = async || {
        let left = space.list_everywhere(&STATEFUL_SETS, SELECTOR).await;
        left.is_empty().then_some(())
    };
    SET_PATIENCE.until("the collection is gone", gone).await;
    cluster.finish().await;
}

/// Waits for an event whose object has a condition like this.
async fn assert_event_shows(
    events: &mut (impl futures::Stream<Item = WatchEvent<Value>> + Unpin),
    condition: &Value,
) {
    let wanted = condition.as_object().unwrap();
    let shown = async {
        loop {
            let event = events.next().await.expect("the watch goes on");
            let (WatchEvent::Added(set) | WatchEvent::Modified(set)) = event else {
                continue;
            };
            let conditions = set["status"]["conditions"].as_array();
            let is = |found: &Value| wanted.iter().all(|(member, value)| found[member] == *value);
            if conditions.is_some_and(|conditions| conditions.iter().any(is)) {
                return;
            }
        }
    };
    let in_time = tokio::time::timeout(SET_PATIENCE.0, shown).await;
    assert!(in_time.is_ok(), "no watch event with condition {condition}");
}

/// Upstream ignores the result of its last watch; this test requires the condition, and that the
/// controller keeps it.
#[tokio::test(start_paused = true)]
async fn test_should_validate_statefulset_status_endpoints() {
    let cluster = Cluster::start("status").await;
    let space = cluster.space();
    let mut set = probed(plain("ss", 1));
    set["metadata"]["labels"] = json!({"e2e": "testing"});
    let ss = cluster.create(&set).await;
    ss.until_ready(1).await;
    ss.until_counts(&[("availableReplicas", 1)]).await;

    let list = space.list_object(&STATEFUL_SETS, "e2e=testing").await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = space.watch(&STATEFUL_SETS, "e2e=testing", version).await;
    let status = space.find(&STATEFUL_SETS, "ss", "status").await.unwrap();
    assert_eq!(status["status"]["replicas"], 1);

    let updated = json!({
        "type": "StatusUpdate", "status": "True", "reason": "E2E",
        "message": "Set from e2e test",
    });
    let append = |set: &mut Value| {
        let conditions = &mut set["status"]["conditions"];
        if let Value::Array(conditions) = conditions {
            conditions.push(updated.clone());
        } else {
            *conditions = json!([updated]);
        }
    };
    space.change(&STATEFUL_SETS, "ss", "status", append).await;
    assert_event_shows(&mut events, &updated).await;

    let patched = json!({"type": "StatusPatched", "status": "True"});
    let patch = json!({"status": {"conditions": [patched]}});
    space
        .patch(&STATEFUL_SETS, "ss", "status", Patch::Merge, &patch)
        .await;
    assert_event_shows(&mut events, &patched).await;

    ss.scale(2).await;
    ss.until_counts(&[("availableReplicas", 2)]).await;
    let conditions = ss.get().await["status"]["conditions"].clone();
    assert_eq!(conditions[0]["type"], "StatusPatched", "{conditions}");
    cluster.finish().await;
}
