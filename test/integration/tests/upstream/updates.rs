//! A rolling update that stops at a partition, and an update under `Recreate`.

use integration::World;
use integration::space::Space;
use integration::stateful_sets::{
    PATIENCE, count, create_stable, list_pods, name, phase, set_finalizers, set_pod_phase,
    set_pod_ready, stateful_set, uid, until_status,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_client::resource::{PODS, STATEFUL_SETS};

/// Finalizer that keeps the deleted pod terminating.
const BLOCK: &str = "fake.example.com/blockDeletion";

/// Makes all pending pods run and become ready; returns their number.
async fn run_pending(space: &Space, since: Timestamp) -> usize {
    let mut pods = list_pods(space).await;
    pods.retain(|pod| phase(pod) == "Pending");
    for pod in &pods {
        set_pod_ready(space, name(pod), true, since).await;
    }
    pods.len()
}

/// A recreated pod below the partition keeps its revision.
#[tokio::test(start_paused = true)]
async fn test_deleting_pod_for_rolling_update_partition() {
    let world = World::with_controller().await;
    let space = world
        .namespace("test-deleting-pod-for-rolling-update-partition")
        .await;
    let mut set = stateful_set("sts", 2);
    set["spec"]["updateStrategy"]["rollingUpdate"] = json!({"partition": 1});
    create_stable(&space, &set).await;
    let pods = list_pods(&space).await;
    assert_eq!(pods.len(), 2);
    let before = [0, 1].map(|index| uid(&pods[index]).to_owned());
    for pod in &pods {
        set_pod_ready(&space, name(pod), true, world.now()).await;
    }
    set_finalizers(&space, "sts-0", &[BLOCK]).await;
    let set_image = |set: &mut Value| {
        set["spec"]["template"]["spec"]["containers"][0]["image"] = "new-image".into();
    };
    space.change(&STATEFUL_SETS, "sts", "", set_image).await;

    let updated = async || {
        run_pending(&space, world.now()).await;
        let set = space.get(&STATEFUL_SETS, "sts").await;
        let counts = ["updatedReplicas", "replicas", "readyReplicas"];
        (counts.map(|member| count(&set, member)) == [1, 2, 2]).then_some(())
    };
    PATIENCE.until("the last pod is updated", updated).await;

    set_pod_phase(&space, "sts-0", "Failed").await;
    space.delete(&PODS, "sts-0", None).await;
    until_status(&space, "sts", &[("readyReplicas", 1)]).await;
    let held = space.get(&PODS, "sts-0").await;
    assert_eq!(
        uid(&held),
        before[0],
        "nothing takes the place of a pod that is held"
    );
    assert!(!held["metadata"]["deletionTimestamp"].is_null());

    set_finalizers(&space, "sts-0", &[]).await;
    let long_ago = world.now() - SignedDuration::from_mins(120);
    let recreated = async || (run_pending(&space, long_ago).await > 0).then_some(());
    PATIENCE
        .until("the first pod is there again", recreated)
        .await;
    until_status(&space, "sts", &[("readyReplicas", 2)]).await;

    let pods = list_pods(&space).await;
    let images: Vec<(&str, &str)> = pods
        .iter()
        .map(|pod| {
            (
                name(pod),
                pod["spec"]["containers"][0]["image"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(images, [("sts-0", "fakeimage"), ("sts-1", "new-image")]);
    for (pod, before) in pods.iter().zip(&before) {
        assert_ne!(uid(pod), before, "{} was made anew", name(pod));
    }
}

/// Returns the images of the pods.
async fn images(space: &Space) -> Vec<String> {
    let image = |pod: &Value| {
        let image = pod["spec"]["containers"][0]["image"].as_str();
        image.expect("a pod has an image").to_owned()
    };
    list_pods(space).await.iter().map(image).collect()
}

/// Waits until every pod has the image and the set's status says so. The poll asks for the
/// generation and the revision, since the counts alone already match before the update.
async fn until_recreated(space: &Space, world: &World, before: &Value, image: &str) {
    let recreated = async || {
        run_pending(space, world.now()).await;
        let found = images(space).await;
        let mut distinct = found.clone();
        distinct.dedup();
        assert!(
            distinct.len() < 2,
            "old and new pods exist together: {found:?}"
        );
        let set = space.get(&STATEFUL_SETS, "sts").await;
        let status = &set["status"];
        let is_observed = status["observedGeneration"] == set["metadata"]["generation"]
            && status["currentRevision"] != before["status"]["currentRevision"];
        let counts = ["replicas", "readyReplicas", "updatedReplicas"];
        let is_complete = counts.map(|member| count(&set, member)) == [3, 3, 3];
        (is_observed && is_complete && found == [image; 3]).then_some(())
    };
    PATIENCE.until("all pods are recreated", recreated).await;
}

/// Old pods are gone before the first new one.
#[tokio::test(start_paused = true)]
async fn test_recreate_stateful_set_update() {
    integration::embedded_only!("needs a gate of 1.37");
    for policy in ["OrderedReady", "Parallel"] {
        let gates = FeatureGates::parse("StatefulSetRecreateStrategy=true", KubeVersion::v1(37));
        let world = World::with_gates(gates.unwrap()).await;
        let space = world.namespace("test-recreate-stateful-set-update").await;
        let mut set = stateful_set("sts", 3);
        set["spec"]["updateStrategy"] = json!({"type": "Recreate"});
        set["spec"]["podManagementPolicy"] = policy.into();
        space.create(&STATEFUL_SETS, &set).await;
        let ready = async || {
            run_pending(&space, world.now()).await;
            let set = space.get(&STATEFUL_SETS, "sts").await;
            (count(&set, "readyReplicas") == 3).then_some(set)
        };
        let before = PATIENCE.until("all pods are ready", ready).await;

        let set_image = |set: &mut Value| {
            set["spec"]["template"]["spec"]["containers"][0]["image"] = "new-image".into();
        };
        space.change(&STATEFUL_SETS, "sts", "", set_image).await;
        until_recreated(&space, &world, &before, "new-image").await;
        let done = async || {
            let set = space.get(&STATEFUL_SETS, "sts").await;
            let condition = set["status"]["conditions"][0].clone();
            (condition["reason"] == "RecreateCompleted").then_some(condition)
        };
        let condition = PATIENCE.until("the condition is set", done).await;
        assert_eq!(condition["type"], "Progressing");
        assert_eq!(condition["status"], "False");
    }
}
