//! Creation of a pod, after its claims.

use statefulset_client::fake::{CallError, Verb};
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::Call;
use statefulset_controller_util::testing::upstream::set;

use super::fixtures::{CLAIM, claim, new_pod, pod};
use crate::tests::world::{ApiWorld, CLAIMS, World};
use crate::{Error, PodSlot, StatefulPodControl};

const CREATED: &str = "Normal SuccessfulCreate Create Pod foo-0 in StatefulSet foo successful";
const CLAIM_CREATED: &str =
    "Normal SuccessfulCreate Create Claim datadir-foo-0 Pod foo-0 in StatefulSet foo success";

fn failed(error: &str) -> String {
    format!("Warning FailedCreate Create Pod foo-0 in StatefulSet foo failed error: {error}")
}

fn claim_failed(error: &str) -> String {
    format!(
        "Warning FailedCreate Create Claim datadir-foo-0 for Pod foo-0 in StatefulSet foo failed error: {error}"
    )
}

async fn create(control: &StatefulPodControl, set: &StatefulSet) -> Result<(), Error> {
    let pod = PodSlot::Missing(new_pod(set, 0));
    control.for_sync(set).create_stateful_pod(&pod).await
}

async fn create_over(world: &ApiWorld, set: &StatefulSet) -> Result<(), Error> {
    create(&world.control, set).await
}

#[tokio::test]
async fn test_stateful_pod_control_creates_pods() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    world.show_written_claims();
    create_over(&world, &set).await.unwrap();
    let claim = format!("create {CLAIMS} {CLAIM}");
    assert_eq!(world.requests(), [&claim, "create pods foo-0"]);
    assert_eq!(world.events(), [CLAIM_CREATED, CREATED]);
}

#[tokio::test]
async fn test_stateful_pod_control_create_pod_exists() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    world.put_claim(&claim(&set));
    world.put_pod(&pod(&set, 0));
    let error = create_over(&world, &set).await.unwrap_err();
    let taken = matches!(&error, Error::Api(error) if error.is_already_exists());
    assert!(taken, "{error}");
    assert_eq!(world.requests(), ["create pods foo-0"]);
    assert!(world.recorder.is_empty());
}

#[tokio::test]
async fn test_stateful_pod_control_create_pod_pvc_create_failure() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    world.fail(Verb::Create, CLAIMS, 1, CallError::InternalError);
    let error = create_over(&world, &set).await.unwrap_err().to_string();
    assert_eq!(world.requests(), [format!("create {CLAIMS} {CLAIM}")]);
    let answer = "Internal error occurred: boom";
    assert_eq!(error, format!("failed to create PVC {CLAIM}: {answer}"));
    let events = [claim_failed(answer), failed(&error)];
    assert_eq!(world.events(), events);
}

#[tokio::test]
async fn test_stateful_pod_control_create_pod_pvc_deleting() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    let deleting = claim(&set).with("metadata.deletionTimestamp", "2019-01-01T00:00:00Z");
    world.put_claim(&deleting);
    let error = create_over(&world, &set).await.unwrap_err().to_string();
    assert_eq!(error, format!("pvc {CLAIM} is being deleted"));
    assert!(world.requests().is_empty());
    assert_eq!(world.events(), [failed(&error)]);
}

#[tokio::test]
async fn test_stateful_pod_control_create_pod_pvc_get_failure() {
    let (world, set) = (World::new(), set(3).build());
    world.fail(Call::GetClaim, 0);
    let error = create(&world.control, &set).await.unwrap_err().to_string();
    assert_eq!(error, format!("failed to retrieve PVC {CLAIM}: boom"));
    let events = [claim_failed("boom"), failed(&error)];
    assert_eq!(world.events(), events);
    assert_eq!(world.requests(Call::CreateClaim), 0);
    assert_eq!(world.requests(Call::CreatePod), 0);
}

#[tokio::test]
async fn test_stateful_pod_control_create_pod_failed() {
    let (world, set) = (ApiWorld::new(), set(3).build());
    world.fail(Verb::Create, "pods", 1, CallError::InternalError);
    let error = create_over(&world, &set).await.unwrap_err().to_string();
    let claim = format!("create {CLAIMS} {CLAIM}");
    assert_eq!(world.requests(), [&claim, "create pods foo-0"]);
    let events = [CLAIM_CREATED, &failed(&error)];
    assert_eq!(world.events(), events);
}
