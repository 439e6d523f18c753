//! Deletion of a pod: this one, or none.

use super::*;

#[tokio::test]
async fn a_pod_created_in_this_sync_that_is_gone_already_counts_as_deleted() {
    let (setup, set) = (in_memory(), web().build());
    let pod = builders::pod(&set, 0).uid("").build();
    let deleted = setup.control.delete_stateful_pod(&set, &pod).await;
    deleted.unwrap();
    assert_eq!(
        setup.recorder.drain(),
        ["Normal SuccessfulDelete Delete Pod web-0 in StatefulSet web successful"]
    );
}

#[tokio::test]
async fn another_pod_of_the_name_stays() {
    let (setup, set) = (in_memory(), web().build());
    let pod = builders::pod(&set, 0);
    setup.objects.pods.put(pod.clone().uid("new").json());
    let deleted = setup.control.delete_stateful_pod(&set, &pod.build()).await;
    assert!(deleted.unwrap_err().is_conflict());
    assert!(setup.objects.pods.json("ns", "web-0").is_some());
    let events = setup.recorder.drain();
    assert!(
        events[0].starts_with("Warning FailedDelete Delete Pod web-0 in StatefulSet web failed error: Precondition failed"),
        "{events:?}"
    );
}

#[tokio::test]
async fn the_uid_is_a_precondition_and_there_is_one_request() {
    let (setup, set) = (over_api(), web().build());
    let pod = builders::pod(&set, 0);
    setup.api.load(&PODS, pod.text());
    let deleted = setup.control.delete_stateful_pod(&set, &pod.build()).await;
    deleted.unwrap();
    assert_eq!(setup.requests(), ["delete pods web-0"]);
    let body = setup.api.actions()[0].json();
    assert_eq!(
        body["preconditions"],
        serde_json::json!({"uid": "web-0-uid"})
    );
}

#[tokio::test]
async fn a_pod_created_in_this_sync_is_looked_up_first() {
    let (setup, set) = (over_api(), web().build());
    let unseen = builders::pod(&set, 0).uid("").build();
    setup.api.load(&PODS, builders::pod(&set, 0).text());
    let deleted = setup.control.delete_stateful_pod(&set, &unseen).await;
    deleted.unwrap();
    assert_eq!(setup.requests(), ["get pods web-0", "delete pods web-0"]);
    let body = setup.api.actions()[1].json();
    assert_eq!(
        body["preconditions"],
        serde_json::json!({"uid": "web-0-uid"})
    );

    let foreign = builders::pod(&set, 0).orphan().owner(foreign_owner());
    setup.api.load(&PODS, foreign.text());
    setup.api.clear_actions();
    let deleted = setup.control.delete_stateful_pod(&set, &unseen).await;
    assert!(deleted.unwrap_err().is_conflict());
    assert_eq!(setup.requests(), ["get pods web-0"]);
}
