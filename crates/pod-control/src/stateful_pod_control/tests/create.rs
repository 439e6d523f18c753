//! Creation of claims, then the pod, then the claims' owners; and the events.

use statefulset_client::feature_gates::KubeVersion;

use super::*;

async fn create(world: &World, set: &StatefulSet) -> Result<(), Error> {
    let pod = PodSlot::Missing(new_pod(set, 0));
    world.put_set(set);
    world.control.for_sync(set).create_stateful_pod(&pod).await
}

fn two_claims() -> StatefulSet {
    web().claim_template("logs").build()
}

#[tokio::test]
async fn claims_are_created_before_the_pod() {
    let (world, set) = (World::new(), two_claims());
    create(&world, &set).await.unwrap();
    assert_eq!(
        world.events(),
        [
            "Normal SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success",
            "Normal SuccessfulCreate Create Claim logs-web-0 Pod web-0 in StatefulSet web success",
            "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful",
        ]
    );
    let pod = world.pod("web-0").unwrap();
    assert_eq!(
        pod["metadata"]["labels"]["controller-revision-hash"],
        "web-1"
    );
    let claim = world.claim("logs-web-0").unwrap();
    assert_eq!(claim["metadata"]["labels"]["app"], "web");
}

#[tokio::test]
async fn events_are_about_the_set() {
    let (world, set) = (World::new(), two_claims());
    create(&world, &set).await.unwrap();
    for (reference, _) in world.recorder.drain_with_references() {
        assert_eq!(reference, set.object_reference());
    }
}

#[tokio::test]
async fn existing_claims_are_left_unchanged() {
    let (world, set) = (World::new(), two_claims());
    let claim = builders::claim(&set, "data", 0);
    world.put_claim(&claim);
    create(&world, &set).await.unwrap();
    assert_eq!(world.events().len(), 2);
    assert_eq!(world.claim("data-web-0"), Some(claim.json()));
    assert_eq!(world.requests(Call::CreateClaim), 1);
}

#[tokio::test]
async fn failed_claim_blocks_the_pod_but_not_other_claims() {
    let (world, set) = (World::new(), two_claims());
    world.fail(Call::CreateClaim, 0);
    let error = create(&world, &set).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to create PVC data-web-0: boom");
    assert_eq!(
        world.events(),
        [
            "Warning FailedCreate Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: boom",
            "Normal SuccessfulCreate Create Claim logs-web-0 Pod web-0 in StatefulSet web success",
            "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: boom",
        ]
    );
    assert_eq!(world.requests(Call::CreatePod), 0);
}

#[tokio::test]
async fn already_existing_claim_fails_without_claim_event() {
    let (world, set) = (World::new(), web().build());
    world.fail_with(Call::CreateClaim, 0, already_exists);
    let error = create(&world, &set).await.unwrap_err();
    assert!(matches!(error, Error::Several(_)), "{error:?}");
    assert_eq!(
        world.events(),
        [
            "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: taken"
        ]
    );
}

#[tokio::test]
async fn terminating_claims_give_only_a_pod_event() {
    let (world, set) = (World::new(), two_claims());
    for template in ["data", "logs"] {
        let claim = builders::claim(&set, template, 0).terminating();
        world.put_claim(&claim);
    }
    let error = create(&world, &set).await.unwrap_err();
    let text = "[pvc data-web-0 is being deleted, pvc logs-web-0 is being deleted]";
    assert_eq!(error.to_string(), text);
    assert_eq!(
        world.events(),
        [format!(
            "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: {text}"
        )]
    );
    assert_eq!(world.requests(Call::CreatePod), 0);
}

#[tokio::test]
async fn existing_pod_fails_without_event_or_owner_change() {
    let world = World::new();
    let set = web().retention("Retain", "Delete").build();
    let claim = builders::claim(&set, "data", 0);
    world.put_claim(&claim);
    world.fail_with(Call::CreatePod, 0, already_exists);
    let error = create(&world, &set).await.unwrap_err();
    assert!(is_already_exists(&error));
    assert_eq!(error.to_string(), "taken");
    assert!(world.recorder.is_empty());
    assert_eq!(world.claim("data-web-0"), Some(claim.json()));
}

#[tokio::test]
async fn claims_get_owners_even_if_the_pod_fails() {
    for fails in [false, true] {
        let world = World::new();
        let set = web().retention("Retain", "Delete").build();
        let claim = builders::claim(&set, "data", 0);
        world.put_claim(&claim);
        if fails {
            world.fail(Call::CreatePod, 0);
        }
        let result = create(&world, &set).await;
        let event = if fails {
            assert_eq!(result.unwrap_err().to_string(), "boom");
            "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: boom"
        } else {
            result.unwrap();
            "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful"
        };
        assert_eq!(world.events(), [event]);
        let stored = world.claim("data-web-0");
        assert_eq!(stored, Some(claim.owner(set_owner()).json()));
    }
}

#[tokio::test]
async fn failed_claim_owner_masks_the_pods_result() {
    for fails in [false, true] {
        let world = World::new();
        let set = web().retention("Retain", "Delete").build();
        let claim = builders::claim(&set, "data", 0);
        world.put_claim(&claim);
        world.fail(Call::UpdateClaim, 0);
        if fails {
            let forbidden = || ApiError::api(403, "Forbidden", "quota");
            world.fail_with(Call::CreatePod, 0, forbidden);
        }
        let error = create(&world, &set).await.unwrap_err();
        let text = "could not update claim data-web-0 for delete policy ownerRefs: boom";
        assert_eq!(error.to_string(), text);
        assert_eq!(
            world.events(),
            [format!(
                "Warning FailedUpdate Update Pod web-0 in StatefulSet web failed error: {text}"
            )]
        );
        let created = world.pod("web-0").is_some();
        assert_eq!(created, !fails);
    }
}

async fn create_missing(world: &World, set: &StatefulSet) -> Result<(), Error> {
    let pod = existing(&builders::pod(set, 0).pending());
    world.put_set(set);
    world
        .control
        .for_sync(set)
        .create_missing_persistent_volume_claims(&pod)
        .await
}

#[tokio::test]
async fn pending_pod_gets_owned_claims_without_pod_event() {
    let world = World::new();
    let set = web().retention("Retain", "Delete").build();
    create_missing(&world, &set).await.unwrap();
    assert_eq!(
        world.events(),
        ["Normal SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success"]
    );
    let claim = world.claim("data-web-0").unwrap();
    assert_eq!(owners(&claim), ["web"]);
    assert_eq!(world.requests(Call::CreatePod), 0);
    assert_eq!(world.requests(Call::UpdatePod), 0);
}

#[tokio::test]
async fn pending_pods_failed_claim_gives_only_a_claim_event() {
    let world = World::new();
    world.fail(Call::CreateClaim, 0);
    let error = create_missing(&world, &web().build()).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to create PVC data-web-0: boom");
    assert_eq!(
        world.events(),
        [
            "Warning FailedCreate Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: boom"
        ]
    );
}

#[tokio::test]
async fn pending_pods_failed_claim_owner_gives_a_pod_event() {
    let world = World::new();
    let set = web().retention("Retain", "Delete").build();
    let claim = builders::claim(&set, "data", 0);
    world.put_claim(&claim);
    world.fail(Call::UpdateClaim, 0);
    create_missing(&world, &set).await.unwrap_err();
    assert_eq!(
        world.events(),
        [
            "Warning FailedUpdate Update Pod web-0 in StatefulSet web failed error: could not update claim data-web-0 for delete policy ownerRefs: boom"
        ]
    );
}

#[tokio::test]
async fn event_messages_are_lower_case_before_1_35() {
    let world = World::with_gates(FeatureGates::at(KubeVersion::v1(34)));
    let set = web().build();
    create(&world, &set).await.unwrap();
    world.fail(Call::CreateClaim, 0);
    let pod = PodSlot::Missing(new_pod(&set, 1));
    let control = world.control.for_sync(&set);
    control.create_stateful_pod(&pod).await.unwrap_err();
    assert_eq!(
        world.events(),
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
    let world = World::new();
    let set = web()
        .claim_template("data")
        .start(i32::MAX)
        .replicas(2)
        .build();
    world.put_set(&set);
    let ordinal = Ordinal::of_index(&set, 1);
    let pod = PodSlot::Missing(NewPod::new(&set, "web-1", ordinal));
    let error = world
        .control
        .for_sync(&set)
        .create_stateful_pod(&pod)
        .await
        .unwrap_err();
    let text =
        "ordinal 2147483648 is larger than 2147483647; lower spec.ordinals.start or spec.replicas";
    assert_eq!(error.to_string(), text);
    assert_eq!(
        world.events(),
        [format!(
            "Warning FailedCreate Create Pod web-2147483648 in StatefulSet web failed error: {text}"
        )]
    );
    assert!(world.claim("data-web-2147483648").is_none());
}
