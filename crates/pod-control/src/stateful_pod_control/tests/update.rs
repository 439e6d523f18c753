//! Repairs, decided on the cached and again on the live object, and conflicts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const UPDATED: &str = "Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful";

fn failed(error: &str) -> String {
    format!("Warning FailedUpdate Update Pod web-0 in StatefulSet web failed error: {error}")
}

async fn update(world: &ApiWorld, set: &StatefulSet, pod: &PodSlot) -> Result<(), Error> {
    world.put_set(set);
    let control = &world.control;
    control.for_sync(set).update_stateful_pod(pod).await
}

/// A pod without its name label, both live and in the cache.
fn unnamed(set: &StatefulSet, world: &ApiWorld) -> PodSlot {
    let pod = builders::pod(set, 0).without_label(NAME_LABEL);
    world.put_claim(&builders::claim(set, "data", 0));
    world.put_pod(&pod);
    existing(&pod)
}

#[tokio::test]
async fn identity_repair_keeps_other_live_fields() {
    let (world, set) = (ApiWorld::new(), web().build());
    world.put_claim(&builders::claim(&set, "data", 0));
    let pod = builders::pod(&set, 0).without_label(NAME_LABEL);
    let live = pod
        .clone()
        .label("live", "1")
        .with("metadata.resourceVersion", "99")
        .with(
            "spec.future",
            json!({"deep": ["<", 9_007_199_254_740_993_i64]}),
        )
        .with("metadata.managedFields", json!([{"manager": "kubelet"}]));
    world.put_pod(&live);
    update(&world, &set, &existing(&pod)).await.unwrap();
    assert_eq!(world.requests(), ["get pods web-0", "update pods web-0"]);
    // The server keeps managed fields that a PUT lacks.
    let expected = live.label(NAME_LABEL, "web-0");
    let expected = expected.without("metadata.managedFields").json();
    assert_eq!(world.api.actions()[1].json(), expected);
    assert_eq!(world.events(), [UPDATED]);
}

#[tokio::test]
async fn storage_repair_follows_claim_creation() {
    let (world, set) = (ApiWorld::new(), web().claim_template("logs").build());
    let pod = builders::pod(&set, 0).with("spec.volumes", json!([{"name": "x", "emptyDir": {}}]));
    world.put_pod(&pod);
    update(&world, &set, &existing(&pod)).await.unwrap();
    assert_eq!(
        world.requests(),
        [
            "create persistentvolumeclaims data-web-0",
            "create persistentvolumeclaims logs-web-0",
            "get pods web-0",
            "update pods web-0",
        ]
    );
    let volumes = world.api.actions()[3].json()["spec"]["volumes"].clone();
    let names: Vec<&Value> = volumes
        .as_array()
        .unwrap()
        .iter()
        .map(|v| &v["name"])
        .collect();
    assert_eq!(names, ["data", "logs", "x"]);
    assert_eq!(world.events().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn claims_are_created_once_until_the_pod_is_written() {
    let (world, set) = (ApiWorld::new(), web().build());
    let pod = builders::pod(&set, 0).with("spec.volumes", json!([]));
    world.put_pod(&pod.clone().uid("new"));
    let error = update(&world, &set, &existing(&pod)).await.unwrap_err();
    assert!(error.is_conflict());
    let mut requests = vec!["create persistentvolumeclaims data-web-0"];
    requests.extend(["get pods web-0"; 4]);
    assert_eq!(world.requests(), requests);
}

/// As in upstream. If the cache is stale, the claim's name is taken.
#[tokio::test(start_paused = true)]
async fn claims_are_created_again_after_a_conflict_on_the_pod() {
    let (world, set) = (ApiWorld::new(), web().build());
    let pod = builders::pod(&set, 0).with("spec.volumes", json!([]));
    world.put_pod(&pod);
    world.fail(ApiVerb::Update, "pods", 1, CallError::Conflict);
    let error = update(&world, &set, &existing(&pod)).await.unwrap_err();
    let create = "create persistentvolumeclaims data-web-0";
    let attempt = [create, "get pods web-0", "update pods web-0"];
    assert_eq!(world.requests(), [&attempt[..], &[create]].concat());
    let failed = failed(&error.to_string());
    assert!(failed.contains("already exists"), "{failed}");
    assert_eq!(world.events()[1..], [&*failed, &*failed]);
}

#[tokio::test(start_paused = true)]
async fn failed_claim_creation_stops_the_repair() {
    let (world, set) = (ApiWorld::new(), web().build());
    let pod = builders::pod(&set, 0).with("spec.volumes", json!([]));
    world.put_pod(&pod);
    let conflict = CallError::Conflict;
    world.fail(ApiVerb::Create, CLAIMS, 1, conflict);
    let error = update(&world, &set, &existing(&pod)).await.unwrap_err();
    assert!(!error.is_conflict());
    assert_eq!(
        world.requests(),
        ["create persistentvolumeclaims data-web-0"]
    );
    let api_text = r#"Operation cannot be fulfilled on persistentvolumeclaims "data-web-0": object has been modified"#;
    assert_eq!(
        world.events(),
        [
            format!(
                "Warning FailedCreate Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: {api_text}"
            ),
            failed(&format!("failed to create PVC data-web-0: {api_text}")),
        ]
    );
}

#[tokio::test]
async fn pod_with_only_wrong_claims_is_written_unchanged() {
    let (world, set) = (ApiWorld::new(), web().retention("Retain", "Delete").build());
    world.put_claim(&builders::claim(&set, "data", 0));
    let pod = builders::pod(&set, 0);
    world.put_pod(&pod);
    update(&world, &set, &existing(&pod)).await.unwrap();
    assert_eq!(
        world.requests(),
        [
            "get persistentvolumeclaims data-web-0",
            "get statefulsets web",
            "update persistentvolumeclaims data-web-0",
            "get pods web-0",
            "update pods web-0",
        ]
    );
    assert_eq!(owners(&world.api.actions()[2].json()), ["web"]);
    assert_eq!(world.api.actions()[4].json(), pod.json());
    assert_eq!(world.events(), [UPDATED]);
}

#[tokio::test]
async fn failed_claim_lookup_stops_the_repair() {
    let (world, set) = (World::new(), web().build());
    world.fail(Call::GetClaim, 0);
    let pod = existing(&builders::pod(&set, 0));
    let result = world.control.for_sync(&set).update_stateful_pod(&pod).await;
    let error = result.unwrap_err().to_string();
    assert_eq!(
        error,
        "Could not retrieve claim data-web-0 for web-0 when checking PVC deletion policy: boom"
    );
    assert_eq!(world.events(), [failed(&error)]);
    assert_eq!(world.requests(Call::UpdatePod), 0);
}

#[tokio::test]
async fn failed_claim_owner_update_stops_the_repair() {
    let set = web().retention("Retain", "Delete").build();
    let update = async |world: &World| {
        let claim = builders::claim(&set, "data", 0);
        world.put_claim(&claim);
        world.put_set(&set);
        let pod = existing(&builders::pod(&set, 0));
        let result = world.control.for_sync(&set).update_stateful_pod(&pod).await;
        let error = result.unwrap_err().to_string();
        assert_eq!(world.events(), [failed(&error)]);
        assert_eq!(world.requests(Call::UpdatePod), 0);
        error
    };
    let world = World::new();
    world.fail(Call::GetClaim, 1);
    assert_eq!(
        update(&world).await,
        "Could not retrieve claim data-web-0 not found for web-0 when checking PVC deletion policy: boom"
    );
    let world = World::new();
    world.fail(Call::UpdateClaim, 0);
    assert_eq!(
        update(&world).await,
        "could not update claim data-web-0 for delete policy ownerRefs: boom"
    );
    assert_eq!(world.requests(Call::UpdateClaim), 1);
}

#[tokio::test(start_paused = true)]
async fn pod_conflict_is_tried_four_times_with_one_event() {
    for (conflicts, succeeds) in [(3, true), (4, false)] {
        let (world, set) = (ApiWorld::new(), web().build());
        let pod = unnamed(&set, &world);
        world.fail(ApiVerb::Update, "pods", conflicts, CallError::Conflict);
        let stored = world.api.raw_objects(&PODS)[0].clone();
        let reads = AtomicUsize::new(10);
        world.api.react(ApiVerb::Get, "pods", move |_| {
            let version = reads.fetch_add(1, Ordering::Relaxed);
            let version = format!(r#""resourceVersion":"{version}""#);
            Some(Ok(stored.replace(r#""resourceVersion":"5""#, &version)))
        });
        let start = Instant::now();
        let result = update(&world, &set, &pod).await;
        assert_eq!(result.is_ok(), succeeds);
        assert_eq!(start.elapsed(), Duration::from_millis(10 + 50 + 250));
        let actions = world.api.actions();
        let versions: Vec<Value> = actions
            .iter()
            .filter(|action| action.verb == ApiVerb::Update)
            .map(|action| action.json()["metadata"]["resourceVersion"].clone())
            .collect();
        assert_eq!(versions, ["10", "11", "12", "13"]);
        let conflict = r#"Operation cannot be fulfilled on pods "web-0": object has been modified"#;
        let expected = if succeeds {
            UPDATED.to_owned()
        } else {
            failed(conflict)
        };
        assert_eq!(world.events(), [expected]);
    }
}

#[tokio::test]
async fn other_update_errors_are_not_retried() {
    let (world, set) = (ApiWorld::new(), web().build());
    let pod = unnamed(&set, &world);
    world.fail(ApiVerb::Update, "pods", 1, CallError::Invalid);
    update(&world, &set, &pod).await.unwrap_err();
    assert_eq!(world.requests(), ["get pods web-0", "update pods web-0"]);
    assert_eq!(world.events(), [failed(r#"X "web-0" is invalid"#)]);
}

#[tokio::test(start_paused = true)]
async fn recreated_pod_is_a_conflict_and_never_written() {
    let (world, set) = (ApiWorld::new(), web().build());
    let pod = unnamed(&set, &world);
    world
        .api
        .load(&PODS, builders::pod(&set, 0).uid("new").text());
    let error = update(&world, &set, &pod).await.unwrap_err();
    assert!(error.is_conflict());
    assert_eq!(world.requests(), ["get pods web-0"; 4]);
    assert_eq!(world.events(), [failed(&error.to_string())]);
}

#[tokio::test]
async fn missing_pod_gives_a_failure_event() {
    let (world, set) = (ApiWorld::new(), web().build());
    let pod = unnamed(&set, &world);
    world.api.unload(&PODS, "ns", "web-0");
    let error = update(&world, &set, &pod).await.unwrap_err();
    assert_eq!(world.requests(), ["get pods web-0"]);
    assert_eq!(world.events(), [failed(&error.to_string())]);
}

#[tokio::test]
async fn correct_live_pod_is_not_written() {
    let (world, set) = (ApiWorld::new(), web().build());
    let pod = unnamed(&set, &world);
    world.put_pod(&builders::pod(&set, 0));
    update(&world, &set, &pod).await.unwrap();
    assert_eq!(world.requests(), ["get pods web-0"]);
    assert!(world.recorder.is_empty());
}

#[tokio::test]
async fn correct_live_claim_is_not_written() {
    let (world, set) = (ApiWorld::new(), web().retention("Retain", "Delete").build());
    let claim = builders::claim(&set, "data", 0);
    world.put_claim(&claim);
    let live = claim.owner(set_owner());
    world.api.load(&PERSISTENT_VOLUME_CLAIMS, live.text());
    let pod = builders::pod(&set, 0);
    world.put_pod(&pod);
    update(&world, &set, &existing(&pod)).await.unwrap();
    assert_eq!(
        world.requests(),
        [
            "get persistentvolumeclaims data-web-0",
            "get pods web-0",
            "update pods web-0"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn claim_conflict_is_retried_with_one_event_each() {
    let (world, set) = (ApiWorld::new(), web().retention("Retain", "Delete").build());
    world.put_claim(&builders::claim(&set, "data", 0));
    let pod = builders::pod(&set, 0);
    world.put_pod(&pod);
    let conflict = CallError::Conflict;
    world.fail(ApiVerb::Update, CLAIMS, 2, conflict);
    let start = Instant::now();
    update(&world, &set, &existing(&pod)).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(10 + 50));
    let error = failed(
        r#"could not update claim data-web-0 for delete policy ownerRefs: Operation cannot be fulfilled on persistentvolumeclaims "data-web-0": object has been modified"#,
    );
    assert_eq!(world.events(), [&*error, &*error, UPDATED]);
}

#[tokio::test(start_paused = true)]
async fn created_pod_is_updated_only_with_the_same_uid() {
    let (world, set) = (ApiWorld::new(), web().retention("Retain", "Delete").build());
    world.put_set(&set);
    world.put_claim(&builders::claim(&set, "data", 0));
    let slot = PodSlot::Missing(new_pod(&set, 0));
    let control = world.control.for_sync(&set);
    control.create_stateful_pod(&slot).await.unwrap();
    world.events();
    world.api.clear_actions();
    // The cache doesn't show the claim's owner yet.
    control.update_stateful_pod(&slot).await.unwrap();
    let expected = [
        "get persistentvolumeclaims data-web-0",
        "get pods web-0",
        "update pods web-0",
    ];
    assert_eq!(world.requests(), expected);
    assert_eq!(world.events(), [UPDATED]);

    world.api.clear_actions();
    let another = builders::pod(&set, 0).uid("new");
    world.put_pod(&another);
    let error = control.update_stateful_pod(&slot).await.unwrap_err();
    assert!(error.is_conflict());
    let writes = world.requests();
    assert!(
        !writes.contains(&"update pods web-0".to_owned()),
        "{writes:?}"
    );
}

#[tokio::test]
async fn new_pod_with_correct_claims_needs_no_request() {
    let (world, set) = (ApiWorld::new(), web().build());
    let slot = PodSlot::Missing(new_pod(&set, 0));
    update(&world, &set, &slot).await.unwrap();
    assert!(world.requests().is_empty());
}
