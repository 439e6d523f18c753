//! Repair of a pod.

use std::sync::atomic::{AtomicUsize, Ordering};

use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::fake::{CallError, Verb};
use statefulset_client::resource::PODS;
use statefulset_controller_util::pod::{POD_NAME_LABEL, Pod};
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream::set;

use super::fixtures::{CLAIM, claim, misnamed_pod, pod};
use crate::Error;
use crate::stateful_set_utils::{identity_matches, storage_matches};
use crate::tests::world::{ApiWorld, CLAIMS, existing};

const UPDATED: &str = "Normal SuccessfulUpdate Update Pod foo-0 in StatefulSet foo successful";

fn failed(error: &str) -> String {
    format!("Warning FailedUpdate Update Pod foo-0 in StatefulSet foo failed error: {error}")
}

async fn update(world: &ApiWorld, set: &StatefulSet, pod: &Builder<Pod>) -> Result<(), Error> {
    let pod = existing(pod);
    let control = &world.control;
    control.for_sync(set).update_stateful_pod(&pod).await
}

/// Returns the pod in the body of the only update.
fn sent_pod(world: &ApiWorld) -> Pod {
    let sent = world.sent(Verb::Update, "pods");
    Pod::decode(&sent.to_string()).unwrap()
}

/// Builds the first pod without claim volumes.
fn pod_without_claims(set: &StatefulSet) -> Builder<Pod> {
    let home = pod(set, 0).json()["spec"]["volumes"][1].take();
    pod(set, 0).with("spec.volumes", vec![home])
}

#[tokio::test]
async fn test_stateful_pod_control_no_op_update() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    world.put_claim(&claim(&set));
    update(&world, &set, &pod(&set, 0)).await.unwrap();
    assert!(world.requests().is_empty());
    assert!(world.recorder.is_empty());
}

#[tokio::test]
async fn test_stateful_pod_control_updates_identity() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    let pod = misnamed_pod(&set);
    world.put_pod(&pod);
    assert!(!identity_matches(&set, &pod.build()));
    update(&world, &set, &pod).await.unwrap();
    assert!(identity_matches(&set, &sent_pod(&world)));
    assert_eq!(world.events(), [UPDATED]);
}

/// Upstream's reactor reverts the change before it is checked. Here a failed write must leave the
/// stored pod unchanged.
#[tokio::test]
async fn test_stateful_pod_control_update_identity_failure() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    let pod = misnamed_pod(&set);
    world.put_pod(&pod);
    world.fail(Verb::Update, "pods", 1, CallError::InternalError);
    let error = update(&world, &set, &pod).await.unwrap_err().to_string();
    assert_eq!(world.requests(), ["get pods foo-0", "update pods foo-0"]);
    assert!(identity_matches(&set, &sent_pod(&world)));
    assert_eq!(world.api.objects(&PODS), [pod.json()]);
    assert_eq!(world.events(), [failed(&error)]);
}

#[tokio::test]
async fn test_stateful_pod_control_updates_pod_storage() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    let pod = pod_without_claims(&set);
    world.put_pod(&pod);
    assert!(!storage_matches(&set, &pod.build()));
    update(&world, &set, &pod).await.unwrap();
    let claim = format!("create {CLAIMS} {CLAIM}");
    assert_eq!(
        world.requests(),
        [&claim, "get pods foo-0", "update pods foo-0"]
    );
    assert!(storage_matches(&set, &sent_pod(&world)));
    let created = format!(
        "Normal SuccessfulCreate Create Claim {CLAIM} Pod foo-0 in StatefulSet foo success"
    );
    assert_eq!(world.events(), [&created, UPDATED]);
}

#[tokio::test]
async fn test_stateful_pod_control_update_pod_storage_failure() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    let pod = pod_without_claims(&set);
    world.put_pod(&pod);
    world.fail(Verb::Create, CLAIMS, 1, CallError::InternalError);
    let error = update(&world, &set, &pod).await.unwrap_err().to_string();
    assert_eq!(world.requests(), [format!("create {CLAIMS} {CLAIM}")]);
    let claim_failed = format!(
        "Warning FailedCreate Create Claim {CLAIM} for Pod foo-0 in StatefulSet foo failed error: Internal error occurred: boom"
    );
    assert_eq!(world.events(), [claim_failed, failed(&error)]);
}

/// Upstream looks claims up among the pods by mistake, and so finds none; here the cache has the
/// claim.
#[tokio::test(start_paused = true)]
async fn test_stateful_pod_control_update_pod_conflict_success() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    world.put_claim(&claim(&set));
    let pod = misnamed_pod(&set);
    world.put_pod(&pod);
    let changed = pod.clone().label(POD_NAME_LABEL, "goo-starts");
    let changed = changed.with("metadata.annotations.later", "1").text();
    let reads = AtomicUsize::new(0);
    world.api.react(Verb::Get, "pods", move |_| {
        let again = reads.fetch_add(1, Ordering::Relaxed) > 0;
        again.then(|| Ok(changed.clone()))
    });
    world.fail(Verb::Update, "pods", 1, CallError::Conflict);
    update(&world, &set, &pod).await.unwrap();
    let attempt = ["get pods foo-0", "update pods foo-0"];
    assert_eq!(world.requests(), [attempt, attempt].concat());
    let stored = world.api.objects(&PODS).remove(0);
    assert_eq!(stored["metadata"]["annotations"]["later"], "1");
    let stored = Pod::decode(&stored.to_string()).unwrap();
    assert!(identity_matches(&set, &stored));
    assert_eq!(world.events(), [UPDATED]);
}
