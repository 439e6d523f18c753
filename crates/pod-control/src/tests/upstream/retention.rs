//! Effect of a set's retention policy on the claims' owners.

use kube_apimachinery::owner_reference::OwnerReference;
use serde_json::{Value, json};
use statefulset_client::fake::Verb;
use statefulset_client::resource::PERSISTENT_VOLUME_CLAIMS;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use statefulset_controller_util::testing::upstream::{NAMESPACE, set};

use super::fixtures::{CLAIM, claim, new_pod, pod};
use crate::stateful_set_utils::PodSlot;
use crate::tests::world::{ApiWorld, CLAIMS, existing};

const UPDATED: &str = "Normal SuccessfulUpdate Update Pod foo-0 in StatefulSet foo successful";

/// Updates the first pod, which needs no repair.
async fn update(world: &ApiWorld, set: &StatefulSet) {
    world.put_set(set);
    let pod = existing(&pod(set, 0));
    let updated = world.control.for_sync(set).update_stateful_pod(&pod).await;
    updated.unwrap();
}

fn owners(claim: &Value) -> Value {
    claim["metadata"]["ownerReferences"].clone()
}

/// Returns the owners of the stored claim.
fn stored_owners(world: &ApiWorld) -> Value {
    let claim = world
        .api
        .object(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, CLAIM);
    owners(&claim.unwrap())
}

/// The set is read before the write that adds it as an owner.
fn writes_of_claim_and_pod() -> [String; 5] {
    [
        format!("get {CLAIMS} {CLAIM}"),
        "get statefulsets foo".to_owned(),
        format!("update {CLAIMS} {CLAIM}"),
        "get pods foo-0".to_owned(),
        "update pods foo-0".to_owned(),
    ]
}

#[tokio::test]
async fn test_stateful_pod_control_claims_match_deletion_polcy() {
    let (world, set) = (ApiWorld::new(), set(3));
    world.put_claim(&claim(&set.build()));
    for (when_deleted, expected) in [("Retain", true), ("Delete", false)] {
        let set = set.clone().retention("Retain", when_deleted).build();
        let pod = existing(&pod(&set, 0));
        let matches = world
            .control
            .for_sync(&set)
            .claims_match_retention_policy(&pod);
        assert_eq!(matches.unwrap(), expected, "{when_deleted}");
    }
}

mod test_stateful_pod_control_update_pod_claim_for_retention_policy {
    use super::*;

    fn deleting_set() -> StatefulSet {
        set(3).uid("set-123").retention("Retain", "Delete").build()
    }

    /// Applies the policy to the claims of a pod without a uid.
    async fn apply(world: &ApiWorld, set: &StatefulSet) {
        world.show_written_claims();
        world.put_set(set);
        let pod = PodSlot::Missing(new_pod(set, 0));
        let control = &world.control;
        let applied = control
            .for_sync(set)
            .update_pod_claim_for_retention_policy(&pod)
            .await;
        applied.unwrap();
    }

    #[tokio::test]
    async fn bare_pvc() {
        let (world, set) = (ApiWorld::new(), deleting_set());
        world.put_claim(&claim(&set));
        apply(&world, &set).await;
        assert_eq!(stored_owners(&world), json!([set.controller_reference()]));
    }

    /// Neither the pod nor the reference has a uid. Upstream compares them as equal, so the claim
    /// is written unchanged.
    #[tokio::test]
    async fn pvc_already_controller() {
        let (world, set) = (ApiWorld::new(), deleting_set());
        let reference = OwnerReference {
            name: "foobar".into(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        let claim = claim(&set).owner(json!(reference));
        world.put_claim(&claim);
        apply(&world, &set).await;
        assert_eq!(world.sent(Verb::Update, CLAIMS), claim.json());
        assert_eq!(stored_owners(&world), owners(&claim.json()));
        let event = format!(
            "Warning ConflictingController PersistentVolumeClaim {CLAIM} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim"
        );
        assert_eq!(world.events(), [event]);
    }
}

/// Upstream checks copies of the claim that never had an owner; here the sent claim is checked.
#[tokio::test]
async fn test_stateful_pod_control_retain_deletion_policy_update() {
    let (world, set) = (ApiWorld::new(), set(1).build());
    world.put_pod(&pod(&set, 0));
    world.put_claim(&claim(&set).owner(json!(set.controller_reference())));
    update(&world, &set).await;
    let mut expected = writes_of_claim_and_pod().to_vec();
    // Removing an owner needs no live read of the set.
    expected.remove(1);
    assert_eq!(world.requests(), expected);
    assert_eq!(world.sent(Verb::Update, CLAIMS), claim(&set).json());
    assert_eq!(stored_owners(&world), Value::Null);
    assert_eq!(world.events(), [UPDATED]);
}

#[tokio::test]
async fn test_stateful_pod_control_retention_policy_update() {
    let world = ApiWorld::new();
    let set = set(1).retention("Retain", "Delete").build();
    world.put_pod(&pod(&set, 0));
    world.put_claim(&claim(&set));
    world.show_written_claims();
    update(&world, &set).await;
    assert_eq!(world.requests(), writes_of_claim_and_pod());
    let cached = world.claims.get(NAMESPACE, CLAIM).unwrap();
    assert_eq!(*cached.owner_references, [set.controller_reference()]);
    assert_eq!(world.events(), [UPDATED]);
}

#[tokio::test]
async fn test_stateful_pod_control_retention_policy_update_missing_claims() {
    let world = ApiWorld::new();
    let set = set(1).retention("Retain", "Delete").build();
    world.put_pod(&pod(&set, 0));
    world.show_written_claims();
    update(&world, &set).await;
    assert!(world.requests().is_empty());

    world.put_claim(&claim(&set));
    update(&world, &set).await;
    let cached = world.claims.get(NAMESPACE, CLAIM).unwrap();
    assert_eq!(*cached.owner_references, [set.controller_reference()]);
    assert_eq!(world.events(), [UPDATED]);
}

/// Upstream's test lacks the set without a policy, which retains.
#[test]
fn test_get_persistent_volume_claim_retention_policy() {
    use ClaimRetentionPolicyType::{Delete, Retain};
    let member = "spec.persistentVolumeClaimRetentionPolicy";
    for (set, when_scaled) in [
        (set(3), Retain),
        (set(3).retention("Delete", "Retain"), Delete),
        (set(3).without(member), Retain),
    ] {
        let policy = set.build().spec.claim_retention_policy;
        assert_eq!(
            (policy.when_scaled, policy.when_deleted),
            (when_scaled, Retain)
        );
    }
}
