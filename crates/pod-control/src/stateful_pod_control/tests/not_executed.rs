//! Writes after which claims are deleted, on a server that has not executed the first attempt.

use statefulset_client::error::Status;
use tokio::time::Instant;

use super::*;

/// A response of an overloaded server, which asks for a wait of two seconds.
fn too_many_requests() -> ApiError {
    ApiError::Api(Box::new(Status {
        details: Some(serde_json::json!({"retryAfterSeconds": 2})),
        ..Status::failure(429, "TooManyRequests", "slow down")
    }))
}

#[tokio::test(start_paused = true)]
async fn deletion_of_a_condemned_pod_waits_and_reads_the_set_again() {
    let world = World::new();
    let set = web().retention("Delete", "Delete").build();
    world.put_set(&set);
    let pod = builders::pod(&set, 5);
    world.put_pod(&pod);
    world.fail_with(Call::DeletePod, 0, too_many_requests);
    let begun = Instant::now();
    let control = world.control.for_sync(&set);
    control
        .delete_condemned_pod(&Arc::new(pod.build()))
        .await
        .unwrap();
    assert_eq!(begun.elapsed().as_secs(), 2);
    let requests = [Call::ReadSet, Call::DeletePod].map(|call| world.requests(call));
    assert_eq!(requests, [2, 2]);
    assert_eq!(world.pod("web-5"), None);
    let events = world.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].starts_with("Normal SuccessfulDelete"),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn change_of_the_set_during_the_wait_stops_the_deletion() {
    let world = World::new();
    let set = web().retention("Delete", "Delete");
    world.put_set(&set.build());
    let pod = builders::pod(&set.build(), 5);
    world.put_pod(&pod);
    world.fail_with(Call::DeletePod, 0, too_many_requests);
    let current = set.build();
    let control = world.control.for_sync(&current);
    let condemned = pod.build();
    let scale_up = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        world.put_set(&web().generation(7).build());
    };
    let condemned = Arc::new(condemned);
    let (deleted, ()) = tokio::join!(control.delete_condemned_pod(&condemned), scale_up);
    let error = deleted.unwrap_err().to_string();
    assert!(error.contains("changed: generation 7"), "{error}");
    assert!(world.pod("web-5").is_some());
    assert_eq!(world.requests(Call::DeletePod), 1);
}

#[tokio::test(start_paused = true)]
async fn new_owner_of_a_claim_waits_and_reads_the_set_again() {
    let world = World::new();
    let set = web().retention("Delete", "Delete").build();
    world.put_set(&set);
    world.put_claim(&builders::claim(&set, "data", 5).owner(set_owner()));
    world.fail_with(Call::UpdateClaim, 0, too_many_requests);
    let control = world.control.for_sync(&set);
    let slot = existing(&builders::pod(&set, 5));
    let updated = control.update_pod_claim_for_retention_policy(&slot);
    updated.await.unwrap();
    let requests = [Call::ReadSet, Call::UpdateClaim].map(|call| world.requests(call));
    assert_eq!(requests, [2, 2]);
    assert_eq!(owners(&world.claim("data-web-5").unwrap()), ["web-5"]);
}

#[tokio::test]
async fn set_without_claim_templates_is_not_read_before_a_deletion() {
    let world = World::new();
    let set = builders::set("web")
        .replicas(2)
        .retention("Delete", "Delete");
    let set = set.build();
    let pod = builders::pod(&set, 5);
    world.put_pod(&pod);
    let control = world.control.for_sync(&set);
    control
        .delete_condemned_pod(&Arc::new(pod.build()))
        .await
        .unwrap();
    let requests = [Call::ReadSet, Call::DeletePod].map(|call| world.requests(call));
    assert_eq!(requests, [0, 1]);
}
