//! Deletion of a pod by uid.

use super::*;

#[tokio::test]
async fn missing_pod_counts_as_deleted() {
    let (setup, set) = (in_memory(), web().build());
    let pod = builders::pod(&set, 0).build();
    let deleted = setup.control.for_sync(&set).delete_stateful_pod(&pod).await;
    deleted.unwrap();
    assert_eq!(
        setup.recorder.drain(),
        ["Normal SuccessfulDelete Delete Pod web-0 in StatefulSet web successful"]
    );
}

#[tokio::test]
async fn recreated_pod_is_not_deleted() {
    let (setup, set) = (in_memory(), web().build());
    let pod = builders::pod(&set, 0);
    setup.objects.pods.put(pod.clone().uid("new").json());
    let deleted = setup
        .control
        .for_sync(&set)
        .delete_stateful_pod(&pod.build())
        .await;
    assert!(deleted.unwrap_err().is_conflict());
    assert!(setup.objects.pods.json("ns", "web-0").is_some());
    let events = setup.recorder.drain();
    assert!(
        events[0].starts_with("Warning FailedDelete Delete Pod web-0 in StatefulSet web failed error: Precondition failed"),
        "{events:?}"
    );
}

#[tokio::test]
async fn delete_sends_one_request_with_uid_precondition() {
    let (setup, set) = (over_api(), web().build());
    let pod = builders::pod(&set, 0);
    setup.api.load(&PODS, pod.text());
    let deleted = setup
        .control
        .for_sync(&set)
        .delete_stateful_pod(&pod.build())
        .await;
    deleted.unwrap();
    assert_eq!(setup.requests(), ["delete pods web-0"]);
    let body = setup.api.actions()[0].json();
    assert_eq!(
        body["preconditions"],
        serde_json::json!({"uid": "web-0-uid"})
    );
}

#[tokio::test]
async fn pod_created_in_this_sync_is_deleted_by_uid() {
    let (setup, set) = (over_api(), web().build());
    let control = setup.control.for_sync(&set);
    let slot = PodSlot::Missing(new_pod(&set, 0));
    let stored = builders::pod(&set, 0).text();
    setup.api.load(&PODS, stored.clone());
    setup
        .api
        .react(ApiVerb::Create, "pods", move |_| Some(Ok(stored.clone())));
    assert!(slot.pod().is_none());
    control.create_stateful_pod(&slot).await.unwrap();
    setup.api.clear_actions();
    let created = slot.pod().unwrap();
    assert!(slot.existing().is_none());
    assert_eq!(slot.uid(), "web-0-uid");
    control.delete_stateful_pod(created).await.unwrap();
    assert_eq!(setup.requests(), ["delete pods web-0"]);
    let body = setup.api.actions()[0].json();
    assert_eq!(body["preconditions"]["uid"], "web-0-uid");
}
