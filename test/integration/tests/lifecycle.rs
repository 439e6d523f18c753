//! Tests of user actions on a set: create, scale, roll, delete.

use integration::{NodeCluster, manifests};
use kube_test_control_plane::actors::PodBehaviour;
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use statefulset_client::resource::{PODS, STATEFUL_SETS};
use std::time::Duration;

/// Pods that take one second each to start, to become ready and to stop.
fn pods() -> PodBehaviour {
    PodBehaviour::with_delays(Duration::from_secs(1))
}

/// Pod creations and deletions in the audit log, as `verb name`.
fn pod_order(cluster: &NodeCluster) -> Vec<String> {
    let controller = |agent: &str| !agent.starts_with("test-control-plane/");
    let entries = cluster.writes();
    let entries = entries
        .iter()
        .filter(|e| e.resource == "pods" && controller(&e.user_agent));
    let named = entries.filter_map(|entry| {
        let created = entry.body_value()["metadata"]["name"]
            .as_str()
            .map(str::to_owned);
        match entry.verb {
            Verb::Create if entry.subresource.is_empty() => {
                Some(format!("create {}", created.unwrap_or_default()))
            }
            Verb::Delete => Some(format!("delete {}", entry.name)),
            _ => None,
        }
    });
    named.collect()
}

/// Clears the audit log, then waits until writes stop.
async fn settle_logged(cluster: &NodeCluster) {
    let log = cluster.plane().server().audit();
    log.clear();
    for _ in 0..100 {
        let before = log
            .entries()
            .iter()
            .filter(|entry| entry.is_write())
            .count();
        tokio::time::sleep(Duration::from_secs(30)).await;
        if log
            .entries()
            .iter()
            .filter(|entry| entry.is_write())
            .count()
            == before
        {
            return;
        }
    }
    panic!("still busy");
}

fn assert_complete(status: &Value, replicas: u32) {
    for counter in [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "currentReplicas",
    ] {
        assert_eq!(status[counter], json!(replicas), "{counter} of {status}");
    }
    assert_eq!(status["currentRevision"], status["updateRevision"]);
}

#[tokio::test(start_paused = true)]
async fn pods_start_in_order_and_scale_down_in_reverse() {
    integration::embedded_only!("counts requests");
    let cluster = NodeCluster::start(pods()).await;
    cluster.create(&STATEFUL_SETS, &manifests::web(3)).await;
    settle_logged(&cluster).await;
    assert_eq!(
        pod_order(&cluster),
        ["create web-0", "create web-1", "create web-2"]
    );
    assert_complete(&cluster.status("web").await, 3);
    assert_eq!(
        cluster.claim_names().await,
        ["data-web-0", "data-web-1", "data-web-2"]
    );

    cluster
        .patch(&STATEFUL_SETS, "web", &json!({"spec": {"replicas": 1}}))
        .await;
    settle_logged(&cluster).await;
    assert_eq!(pod_order(&cluster), ["delete web-2", "delete web-1"]);
    assert_eq!(cluster.pod_names().await, ["web-0"]);
    assert_eq!(cluster.claim_names().await.len(), 3, "claims are retained");
}

#[tokio::test(start_paused = true)]
async fn parallel_set_creates_pods_without_waiting_for_readiness() {
    integration::embedded_only!("delays pods in paused time");
    let stage = Duration::from_secs(60);
    let cluster = NodeCluster::start(PodBehaviour::with_delays(stage)).await;
    let mut set = manifests::web(20);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    cluster.create(&STATEFUL_SETS, &set).await;
    tokio::time::sleep(stage).await;
    assert_eq!(cluster.pod_names().await.len(), 20);
    let ready = cluster.status("web").await["readyReplicas"].as_u64();
    assert_eq!(ready.unwrap_or(0), 0);
    tokio::time::sleep(2 * stage).await;
    cluster.settle().await;
    assert_complete(&cluster.status("web").await, 20);
}

#[tokio::test(start_paused = true)]
async fn rollout_goes_from_the_highest_ordinal_to_the_partition() {
    integration::embedded_only!("counts requests");
    let cluster = NodeCluster::start(pods()).await;
    cluster.create(&STATEFUL_SETS, &manifests::web(3)).await;
    cluster.settle().await;

    let image = |tag: &str, partition: u32| {
        json!([
            {"op": "replace", "path": "/spec/template/spec/containers/0/image",
             "value": format!("registry.example/web:{tag}")},
            {"op": "replace", "path": "/spec/updateStrategy/rollingUpdate/partition",
             "value": partition},
        ])
    };
    edit_set(&cluster, &image("2", 2)).await;
    settle_logged(&cluster).await;
    assert_eq!(pod_order(&cluster), ["delete web-2", "create web-2"]);
    let status = cluster.status("web").await;
    assert_eq!(status["updatedReplicas"], 1);
    assert_ne!(status["currentRevision"], status["updateRevision"]);

    edit_set(&cluster, &image("2", 0)).await;
    settle_logged(&cluster).await;
    let rolled = [
        "delete web-1",
        "create web-1",
        "delete web-0",
        "create web-0",
    ];
    assert_eq!(pod_order(&cluster), rolled);
    assert_complete(&cluster.status("web").await, 3);

    edit_set(&cluster, &image("1", 0)).await;
    cluster.settle().await;
    let revisions = cluster.revisions().await;
    assert_eq!(
        revisions.len(),
        2,
        "the rollback renumbers the first revision"
    );
    assert_eq!(revisions[1]["revision"], 3);
    let status = cluster.status("web").await;
    assert_eq!(status["currentRevision"], revisions[1]["metadata"]["name"]);
}

async fn edit_set(cluster: &NodeCluster, operations: &Value) {
    // A merge patch can't change list elements, so the whole set is edited.
    let mut set = cluster
        .get(&STATEFUL_SETS, "web")
        .await
        .expect("the set exists");
    for operation in operations.as_array().expect("a list") {
        let path = operation["path"].as_str().expect("a path");
        *set.pointer_mut(path).expect("the path exists") = operation["value"].clone();
    }
    cluster
        .patch(&STATEFUL_SETS, "web", &json!({"spec": set["spec"]}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_is_recreated() {
    integration::embedded_only!("counts requests");
    let cluster = NodeCluster::start(pods()).await;
    cluster.create(&STATEFUL_SETS, &manifests::web(2)).await;
    cluster.settle().await;
    let before = cluster.pod_uids().await;
    cluster.delete(&PODS, "web-1", &json!({})).await;
    cluster.settle().await;
    let after = cluster.pod_uids().await;
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1].1, after[1].1);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_set_deletes_its_pods_unless_orphaned() {
    integration::embedded_only!("counts requests");
    for (policy, left) in [("Background", 0), ("Foreground", 0), ("Orphan", 2)] {
        let cluster = NodeCluster::start(pods()).await;
        cluster.create(&STATEFUL_SETS, &manifests::web(2)).await;
        cluster.settle().await;
        cluster
            .delete(&STATEFUL_SETS, "web", &json!({"propagationPolicy": policy}))
            .await;
        cluster.settle().await;
        assert!(
            cluster.get(&STATEFUL_SETS, "web").await.is_none(),
            "{policy}"
        );
        assert_eq!(cluster.pod_names().await.len(), left, "{policy}");
        assert_eq!(cluster.claim_names().await.len(), 2, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn scale_down_deletes_claims_if_the_policy_says_so() {
    integration::embedded_only!("counts requests");
    let cluster = NodeCluster::start(pods()).await;
    let mut set = manifests::web(3);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenScaled": "Delete", "whenDeleted": "Retain"});
    cluster.create(&STATEFUL_SETS, &set).await;
    cluster.settle().await;
    cluster
        .patch(&STATEFUL_SETS, "web", &json!({"spec": {"replicas": 1}}))
        .await;
    cluster.settle().await;
    assert_eq!(cluster.pod_names().await, ["web-0"]);
    assert_eq!(cluster.claim_names().await, ["data-web-0"]);
}
