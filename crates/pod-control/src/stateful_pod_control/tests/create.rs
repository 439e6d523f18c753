//! Creation of claims, then the pod, then the claims' owners; and the events.

use super::*;

async fn create(setup: &InMemory, set: &StatefulSet) -> Result<(), Error> {
    let pod = PodSlot::Missing(new_pod(set, 0));
    setup.objects.sets.add(set.clone());
    setup.control.for_sync(set).create_stateful_pod(&pod).await
}

fn two_claims() -> StatefulSet {
    web().claim_template("logs").build()
}

#[tokio::test]
async fn claims_are_created_before_the_pod() {
    let (setup, set) = (in_memory(), two_claims());
    create(&setup, &set).await.unwrap();
    assert_eq!(
        setup.recorder.drain(),
        [
            "Normal SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success",
            "Normal SuccessfulCreate Create Claim logs-web-0 Pod web-0 in StatefulSet web success",
            "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful",
        ]
    );
    let pod = setup.objects.pods.json("ns", "web-0").unwrap();
    assert_eq!(
        pod["metadata"]["labels"]["controller-revision-hash"],
        "web-1"
    );
    let claim = setup.objects.claims.json("ns", "logs-web-0").unwrap();
    assert_eq!(claim["metadata"]["labels"]["app"], "web");
}

#[tokio::test]
async fn events_are_about_the_set() {
    let (setup, set) = (in_memory(), two_claims());
    create(&setup, &set).await.unwrap();
    for (reference, _) in setup.recorder.drain_with_references() {
        assert_eq!(reference, set.object_reference());
    }
}

#[tokio::test]
async fn existing_claims_are_left_unchanged() {
    let (setup, set) = (in_memory(), two_claims());
    let claim = builders::claim(&set, "data", 0).json();
    setup.objects.claims.put(claim.clone());
    create(&setup, &set).await.unwrap();
    assert_eq!(setup.recorder.drain().len(), 2);
    assert_eq!(setup.objects.claims.json("ns", "data-web-0"), Some(claim));
    assert_eq!(setup.objects.create_claim_tracker.requests(), 1);
}

#[tokio::test]
async fn failed_claim_blocks_the_pod_but_not_other_claims() {
    let (setup, set) = (in_memory(), two_claims());
    setup.objects.create_claim_tracker.fail_after(0, boom);
    let error = create(&setup, &set).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to create PVC data-web-0: boom");
    assert_eq!(
        setup.recorder.drain(),
        [
            "Warning FailedCreate Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: boom",
            "Normal SuccessfulCreate Create Claim logs-web-0 Pod web-0 in StatefulSet web success",
            "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: boom",
        ]
    );
    assert_eq!(setup.objects.create_pod_tracker.requests(), 0);
}

#[tokio::test]
async fn already_existing_claim_fails_without_claim_event() {
    let (setup, set) = (in_memory(), web().build());
    let tracker = &setup.objects.create_claim_tracker;
    tracker.fail_after(0, already_exists);
    let error = create(&setup, &set).await.unwrap_err();
    assert!(matches!(error, Error::Several(_)), "{error:?}");
    assert_eq!(
        setup.recorder.drain(),
        [
            "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: taken"
        ]
    );
}

#[tokio::test]
async fn terminating_claims_give_only_a_pod_event() {
    let (setup, set) = (in_memory(), two_claims());
    for template in ["data", "logs"] {
        let claim = builders::claim(&set, template, 0).terminating();
        setup.objects.claims.put(claim.json());
    }
    let error = create(&setup, &set).await.unwrap_err();
    let text = "[pvc data-web-0 is being deleted, pvc logs-web-0 is being deleted]";
    assert_eq!(error.to_string(), text);
    assert_eq!(
        setup.recorder.drain(),
        [format!(
            "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: {text}"
        )]
    );
    assert_eq!(setup.objects.create_pod_tracker.requests(), 0);
}

#[tokio::test]
async fn existing_pod_fails_without_event_or_owner_change() {
    let setup = in_memory();
    let set = web().retention("Retain", "Delete").build();
    let claim = builders::claim(&set, "data", 0);
    setup.objects.claims.put(claim.json());
    let tracker = &setup.objects.create_pod_tracker;
    tracker.fail_after(0, already_exists);
    let error = create(&setup, &set).await.unwrap_err();
    assert!(is_already_exists(&error));
    assert_eq!(error.to_string(), "taken");
    assert!(setup.recorder.is_empty());
    assert_eq!(
        setup.objects.claims.json("ns", "data-web-0"),
        Some(claim.json())
    );
}

#[tokio::test]
async fn claims_get_owners_even_if_the_pod_fails() {
    for fails in [false, true] {
        let setup = in_memory();
        let set = web().retention("Retain", "Delete").build();
        let claim = builders::claim(&set, "data", 0);
        setup.objects.claims.put(claim.json());
        if fails {
            setup.objects.create_pod_tracker.fail_after(0, boom);
        }
        let result = create(&setup, &set).await;
        let event = if fails {
            assert_eq!(result.unwrap_err().to_string(), "boom");
            "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: boom"
        } else {
            result.unwrap();
            "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful"
        };
        assert_eq!(setup.recorder.drain(), [event]);
        let stored = setup.objects.claims.json("ns", "data-web-0");
        assert_eq!(stored, Some(claim.owner(set_owner()).json()));
    }
}

#[tokio::test]
async fn failed_claim_owner_masks_the_pods_result() {
    for fails in [false, true] {
        let setup = in_memory();
        let set = web().retention("Retain", "Delete").build();
        let claim = builders::claim(&set, "data", 0);
        setup.objects.claims.put(claim.json());
        setup.objects.update_claim_tracker.fail_after(0, boom);
        if fails {
            let forbidden = || ApiError::api(403, "Forbidden", "quota");
            setup.objects.create_pod_tracker.fail_after(0, forbidden);
        }
        let error = create(&setup, &set).await.unwrap_err();
        let text = "could not update claim data-web-0 for delete policy ownerRefs: boom";
        assert_eq!(error.to_string(), text);
        assert_eq!(
            setup.recorder.drain(),
            [format!(
                "Warning FailedUpdate Update Pod web-0 in StatefulSet web failed error: {text}"
            )]
        );
        let created = setup.objects.pods.json("ns", "web-0").is_some();
        assert_eq!(created, !fails);
    }
}

async fn create_missing(setup: &InMemory, set: &StatefulSet) -> Result<(), Error> {
    let pod = existing(&builders::pod(set, 0).pending());
    setup.objects.sets.add(set.clone());
    setup
        .control
        .for_sync(set)
        .create_missing_persistent_volume_claims(&pod)
        .await
}

#[tokio::test]
async fn pending_pod_gets_owned_claims_without_pod_event() {
    let setup = in_memory();
    let set = web().retention("Retain", "Delete").build();
    create_missing(&setup, &set).await.unwrap();
    assert_eq!(
        setup.recorder.drain(),
        ["Normal SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success"]
    );
    let claim = setup.objects.claims.json("ns", "data-web-0").unwrap();
    assert_eq!(owners(&claim), ["web"]);
    assert_eq!(setup.objects.create_pod_tracker.requests(), 0);
    assert_eq!(setup.objects.update_pod_tracker.requests(), 0);
}

#[tokio::test]
async fn pending_pods_failed_claim_gives_only_a_claim_event() {
    let setup = in_memory();
    setup.objects.create_claim_tracker.fail_after(0, boom);
    let error = create_missing(&setup, &web().build()).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to create PVC data-web-0: boom");
    assert_eq!(
        setup.recorder.drain(),
        [
            "Warning FailedCreate Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: boom"
        ]
    );
}

#[tokio::test]
async fn pending_pods_failed_claim_owner_gives_a_pod_event() {
    let setup = in_memory();
    let set = web().retention("Retain", "Delete").build();
    let claim = builders::claim(&set, "data", 0);
    setup.objects.claims.put(claim.json());
    setup.objects.update_claim_tracker.fail_after(0, boom);
    create_missing(&setup, &set).await.unwrap_err();
    assert_eq!(
        setup.recorder.drain(),
        [
            "Warning FailedUpdate Update Pod web-0 in StatefulSet web failed error: could not update claim data-web-0 for delete policy ownerRefs: boom"
        ]
    );
}

#[tokio::test]
async fn event_messages_are_lower_case_before_1_35() {
    let mut setup = in_memory();
    setup.control = setup.control.with_lower_case_events(true);
    let set = web().build();
    create(&setup, &set).await.unwrap();
    setup.objects.create_claim_tracker.fail_after(0, boom);
    let pod = PodSlot::Missing(new_pod(&set, 1));
    let control = setup.control.for_sync(&set);
    control.create_stateful_pod(&pod).await.unwrap_err();
    assert_eq!(
        setup.recorder.drain(),
        [
            "Normal SuccessfulCreate create Claim data-web-0 Pod web-0 in StatefulSet web success",
            "Normal SuccessfulCreate create Pod web-0 in StatefulSet web successful",
            "Warning FailedCreate create Claim data-web-1 for Pod web-1 in StatefulSet web failed error: boom",
            "Warning FailedCreate create Pod web-1 in StatefulSet web failed error: failed to create PVC data-web-1: boom",
        ]
    );
}

#[tokio::test]
async fn ordinal_past_the_largest_creates_nothing() {
    let setup = in_memory();
    let set = web()
        .claim_template("data")
        .start(i32::MAX)
        .replicas(2)
        .build();
    setup.objects.sets.add(set.clone());
    let ordinal = Ordinal::of_index(&set, 1);
    let pod = PodSlot::Missing(NewPod::new(&set, "web-1", ordinal));
    let error = setup
        .control
        .for_sync(&set)
        .create_stateful_pod(&pod)
        .await
        .unwrap_err();
    let text =
        "ordinal 2147483648 is larger than 2147483647; lower spec.ordinals.start or spec.replicas";
    assert_eq!(error.to_string(), text);
    assert_eq!(
        setup.recorder.drain(),
        [format!(
            "Warning FailedCreate Create Pod web-2147483648 in StatefulSet web failed error: {text}"
        )]
    );
    assert!(
        setup
            .objects
            .claims
            .json("ns", "data-web-2147483648")
            .is_none()
    );
}
