//! The stock role is enough for the controller and its events, and no more of it is used than
//! upstream uses: statuses and claims are written by PUT, and neither is ever patched.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use integration::{Cluster, manifests};
use kube_test_control_plane::actors::PodBehaviour;
use kube_test_control_plane::audit::Settle;
use serde_json::json;
use statefulset_client::resource::{PODS, STATEFUL_SETS};

const USER: &str = "system:serviceaccount:kube-system:statefulset-controller";

/// What the controller may do by the stock role, and does.
const USED: [(&str, &[&str]); 6] = [
    (
        "controllerrevisions",
        &[
            "create", "delete", "get", "list", "patch", "update", "watch",
        ],
    ),
    // A repeated event is counted up by a patch.
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

async fn settle(cluster: &Cluster) {
    let quiet = Settle::quiet_for(Duration::from_secs(30));
    let settled = cluster.plane().server().audit().settle(&quiet).await;
    settled.unwrap_or_else(|error| panic!("{error}"));
}

async fn patch_set(cluster: &Cluster, patch: serde_json::Value) {
    cluster.patch(&STATEFUL_SETS, "web", &patch).await;
    settle(cluster).await;
}

fn image(image: &str) -> serde_json::Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
}

/// Makes the controller do everything that it ever does.
async fn everything(cluster: &Cluster) {
    let mut set = manifests::web(3);
    set["spec"]["revisionHistoryLimit"] = json!(1);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenScaled": "Delete", "whenDeleted": "Delete"});
    cluster.create(&STATEFUL_SETS, &set).await;
    settle(cluster).await;
    patch_set(cluster, json!({"spec": {"replicas": 2}})).await;
    // A new revision, one that comes back under a new number, and one too many.
    for name in ["web:2", "web:3", "web:2", "web:4"] {
        patch_set(cluster, image(name)).await;
    }
    // A pod that is put right, and one that is let go.
    let wrong = json!({"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": "wrong"}}});
    cluster.patch(&PODS, "web-0", &wrong).await;
    settle(cluster).await;
    let foreign = json!({"metadata": {"labels": {"app": "other"}}});
    cluster.patch(&PODS, "web-1", &foreign).await;
    settle(cluster).await;
    let foreign = json!({"gracePeriodSeconds": 0});
    cluster.delete(&PODS, "web-1", &foreign).await;
    settle(cluster).await;
    // Orphans, which another set of the name adopts.
    let orphan = json!({"propagationPolicy": "Orphan"});
    cluster.delete(&STATEFUL_SETS, "web", &orphan).await;
    settle(cluster).await;
    set["spec"]["replicas"] = json!(2);
    cluster.create(&STATEFUL_SETS, &set).await;
    settle(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn everything_goes_by_the_verbs_of_the_stock_role() {
    integration::embedded_only!("reads the audit log");
    let mut cluster = Cluster::start_without_controller(PodBehaviour::default()).await;
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
    // A revision is read live only after a conflict, which there was none of.
    used.entry("controllerrevisions".to_owned())
        .or_default()
        .insert("get");
    let expected = USED.map(|(resource, verbs)| {
        let verbs: BTreeSet<&str> = verbs.iter().copied().collect();
        (resource.to_owned(), verbs)
    });
    assert_eq!(used, BTreeMap::from(expected));
}
