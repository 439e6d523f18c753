//! Deletion of a pod. The pod has a uid, as every stored pod does; without one it would be read
//! first.

use statefulset_client::fake::{CallError, Verb};
use statefulset_client::resource::PODS;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream::set;

use super::fixtures::pod;
use crate::Error;
use crate::tests::world::ApiWorld;

const DELETED: &str = "Normal SuccessfulDelete Delete Pod foo-0 in StatefulSet foo successful";

fn stored_pod() -> Builder<Pod> {
    pod(&set(3).build(), 0).uid("foo-0-uid")
}

/// Deletes the pod with one request.
async fn delete(world: &ApiWorld) -> Result<(), Error> {
    let (set, pod) = (set(3).build(), stored_pod().build());
    let deleted = world.control.for_sync(&set).delete_stateful_pod(&pod).await;
    assert_eq!(world.requests(), ["delete pods foo-0"]);
    deleted
}

#[tokio::test]
async fn test_stateful_pod_control_deletes_stateful_pod() {
    let world = ApiWorld::new();
    world.put_pod(&stored_pod());
    delete(&world).await.unwrap();
    assert!(world.api.objects(&PODS).is_empty());
    assert_eq!(world.events(), [DELETED]);
}

#[tokio::test]
async fn test_stateful_pod_control_delete_stateful_pod_not_found() {
    let world = ApiWorld::new();
    delete(&world).await.unwrap();
    assert_eq!(world.events(), [DELETED]);
}

#[tokio::test]
async fn test_stateful_pod_control_delete_failure() {
    let world = ApiWorld::new();
    world.put_pod(&stored_pod());
    world.fail(Verb::Delete, "pods", 1, CallError::InternalError);
    let error = delete(&world).await.unwrap_err().to_string();
    assert_eq!(error, "Internal error occurred: boom");
    assert_eq!(world.api.objects(&PODS).len(), 1);
    let event =
        format!("Warning FailedDelete Delete Pod foo-0 in StatefulSet foo failed error: {error}");
    assert_eq!(world.events(), [event]);
}
