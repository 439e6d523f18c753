//! Deletion of a pod by uid.

use super::*;

#[tokio::test]
async fn missing_pod_counts_as_deleted() {
    let (world, set) = (World::new(), web().build());
    let pod = builders::pod(&set, 0).build();
    let deleted = world.control.for_sync(&set).delete_stateful_pod(&pod).await;
    deleted.unwrap();
    assert_eq!(
        world.events(),
        ["Normal SuccessfulDelete Delete Pod web-0 in StatefulSet web successful"]
    );
}

#[tokio::test]
async fn recreated_pod_is_not_deleted() {
    let (world, set) = (World::new(), web().build());
    let pod = builders::pod(&set, 0);
    world.put_pod(&pod.clone().uid("new"));
    let deleted = world
        .control
        .for_sync(&set)
        .delete_stateful_pod(&pod.build())
        .await;
    assert!(deleted.unwrap_err().is_conflict());
    assert!(world.pod("web-0").is_some());
    let events = world.events();
    assert!(
        events[0].starts_with("Warning FailedDelete Delete Pod web-0 in StatefulSet web failed error: Precondition failed"),
        "{events:?}"
    );
}

#[tokio::test]
async fn delete_sends_one_request_with_uid_precondition() {
    let (world, set) = (ApiWorld::new(), web().build());
    let pod = builders::pod(&set, 0);
    world.put_pod(&pod);
    let deleted = world
        .control
        .for_sync(&set)
        .delete_stateful_pod(&pod.build())
        .await;
    deleted.unwrap();
    assert_eq!(world.requests(), ["delete pods web-0"]);
    let body = world.api.actions()[0].json();
    assert_eq!(
        body["preconditions"],
        serde_json::json!({"uid": "web-0-uid"})
    );
}

#[tokio::test]
async fn pod_created_in_this_sync_is_deleted_by_uid() {
    let (world, set) = (ApiWorld::new(), web().build());
    let control = world.control.for_sync(&set);
    let mut outdated = new_pod(&set, 0);
    outdated.is_outdated = true;
    let slot = PodSlot::Missing(outdated);
    let stored = builders::pod(&set, 0).text();
    world.api.load(&PODS, stored.clone());
    world
        .api
        .react(ApiVerb::Create, "pods", move |_| Some(Ok(stored.clone())));
    assert!(slot.pod().is_none());
    control.create_stateful_pod(&slot).await.unwrap();
    world.api.clear_actions();
    let created = slot.pod().unwrap();
    assert!(slot.existing().is_none());
    assert_eq!(slot.uid(), "web-0-uid");
    control.delete_stateful_pod(created).await.unwrap();
    assert_eq!(world.requests(), ["delete pods web-0"]);
    let body = world.api.actions()[0].json();
    assert_eq!(body["preconditions"]["uid"], "web-0-uid");
}
