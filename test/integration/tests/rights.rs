//! Test that the default role suffices for the controller and its events, and that the controller
//! uses no more of it than upstream: statuses and claims are written by PUT, never patched.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use integration::{NodeCluster, manifests};
use kube_test_control_plane::actors::PodBehaviour;
use kube_test_control_plane::audit::Settle;
use serde_json::json;
use statefulset_client::resource::{PODS, STATEFUL_SETS};

const USER: &str = "system:serviceaccount:kube-system:statefulset-controller";

/// Permissions of the default role that the controller uses.
const USED: [(&str, &[&str]); 6] = [
    (
        "controllerrevisions",
        &[
            "create", "delete", "get", "list", "patch", "update", "watch",
        ],
    ),
    // Repeated events are counted with a patch.
    ("events", &["create", "patch"]),
    (
        "persistentvolumeclaims",
        &["create", "get", "list", "update", "watch"],
    ),
    (
        "pods",
        &[
            "create", "delete", "get", "list", "patch", "update", "watch",
        ],
    ),
    ("statefulsets", &["get", "list", "watch"]),
    ("statefulsets/status", &["update"]),
];

async fn settle(cluster: &NodeCluster) {
    let quiet = Settle::quiet_for(Duration::from_secs(30));
    let settled = cluster.plane().server().audit().settle(&quiet).await;
    settled.unwrap_or_else(|error| panic!("{error}"));
}

async fn patch_set(cluster: &NodeCluster, patch: serde_json::Value) {
    cluster.patch(&STATEFUL_SETS, "web", &patch).await;
    settle(cluster).await;
}

fn image(image: &str) -> serde_json::Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
}

/// Makes the controller perform all of its actions.
async fn everything(cluster: &NodeCluster) {
    let mut set = manifests::web(3);
    set["spec"]["revisionHistoryLimit"] = json!(1);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenScaled": "Delete", "whenDeleted": "Delete"});
    cluster.create(&STATEFUL_SETS, &set).await;
    settle(cluster).await;
    patch_set(cluster, json!({"spec": {"replicas": 2}})).await;
    // A new revision, one that returns under a new number, and one beyond the limit.
    for name in ["web:2", "web:3", "web:2", "web:4"] {
        patch_set(cluster, image(name)).await;
    }
    // A pod that is repaired, and one that is released.
    let wrong = json!({"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": "wrong"}}});
    cluster.patch(&PODS, "web-0", &wrong).await;
    settle(cluster).await;
    let foreign = json!({"metadata": {"labels": {"app": "other"}}});
    cluster.patch(&PODS, "web-1", &foreign).await;
    settle(cluster).await;
    let foreign = json!({"gracePeriodSeconds": 0});
    cluster.delete(&PODS, "web-1", &foreign).await;
    settle(cluster).await;
    // Orphans that another set of this name adopts.
    let orphan = json!({"propagationPolicy": "Orphan"});
    cluster.delete(&STATEFUL_SETS, "web", &orphan).await;
    settle(cluster).await;
    set["spec"]["replicas"] = json!(2);
    cluster.create(&STATEFUL_SETS, &set).await;
    settle(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn controller_uses_only_verbs_of_the_default_role() {
    integration::embedded_only!("reads the audit log");
    let mut cluster = NodeCluster::start_without_controller(PodBehaviour::default()).await;
    cluster.start_recording_controller();
    everything(&cluster).await;
    let audit = cluster.plane().server().audit();
    let entries = audit.matching(|entry| entry.user == USER);
    let mut used: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for entry in &entries {
        assert_ne!(entry.code, 403, "{}: {}", entry.summary(), entry.message);
        let is_strategic = entry.patch_type().is_none_or(|kind| kind == "strategic");
        assert!(is_strategic, "{}", entry.summary());
        let mut resource = entry.resource.clone();
        if !entry.subresource.is_empty() {
            resource = format!("{resource}/{}", entry.subresource);
        }
        used.entry(resource).or_default().insert(entry.verb.name());
    }
    let expected = USED.map(|(resource, verbs)| {
        let verbs: BTreeSet<&str> = verbs.iter().copied().collect();
        (resource.to_owned(), verbs)
    });
    assert_eq!(used, BTreeMap::from(expected));
}
