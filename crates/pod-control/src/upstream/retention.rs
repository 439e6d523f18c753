//! Effect of a set's retention policy on the claims' owners.

use kube_apimachinery::owner_reference::OwnerReference;
use serde_json::{Value, json};
use statefulset_client::fake::Verb;
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS};
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use statefulset_controller_util::testing::upstream::{NAMESPACE, set};

use super::fixtures::{CLAIM, claim, new_pod, pod};
use crate::stateful_set_utils::PodSlot;
use crate::test_setup::{CLAIMS, OverApi, existing, over_api};

const UPDATED: &str = "Normal SuccessfulUpdate Update Pod foo-0 in StatefulSet foo successful";

/// Updates the first pod, which needs no repair.
async fn update(setup: &OverApi, set: &StatefulSet) {
    setup.store_set(set);
    let pod = existing(&pod(set, 0));
    let updated = setup.control.for_sync(set).update_stateful_pod(&pod).await;
    updated.unwrap();
}

fn owners(claim: &Value) -> Value {
    claim["metadata"]["ownerReferences"].clone()
}

/// Returns the owners of the stored claim.
fn stored_owners(setup: &OverApi) -> Value {
    let claim = setup
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
    let (setup, set) = (over_api(), set(3));
    setup.load_claim(&claim(&set.build()));
    for (when_deleted, expected) in [("Retain", true), ("Delete", false)] {
        let set = set.clone().retention("Retain", when_deleted).build();
        let pod = existing(&pod(&set, 0));
        let matches = setup
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
    async fn apply(setup: &OverApi, set: &StatefulSet) {
        setup.show_written_claims();
        setup.store_set(set);
        let pod = PodSlot::Missing(new_pod(set, 0));
        let control = &setup.control;
        let applied = control
            .for_sync(set)
            .update_pod_claim_for_retention_policy(&pod)
            .await;
        applied.unwrap();
    }

    #[tokio::test]
    async fn bare_pvc() {
        let (setup, set) = (over_api(), deleting_set());
        setup.load_claim(&claim(&set));
        apply(&setup, &set).await;
        assert_eq!(stored_owners(&setup), json!([set.controller_reference()]));
    }

    /// Neither the pod nor the reference has a uid. Upstream compares them as equal, so the claim
    /// is written unchanged.
    #[tokio::test]
    async fn pvc_already_controller() {
        let (setup, set) = (over_api(), deleting_set());
        let reference = OwnerReference {
            name: "foobar".into(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        let claim = claim(&set).owner(json!(reference));
        setup.load_claim(&claim);
        apply(&setup, &set).await;
        assert_eq!(setup.sent(Verb::Update, CLAIMS), claim.json());
        assert_eq!(stored_owners(&setup), owners(&claim.json()));
        let event = format!(
            "Warning ConflictingController PersistentVolumeClaim {CLAIM} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim"
        );
        assert_eq!(setup.recorder.drain(), [event]);
    }
}

/// Upstream checks copies of the claim that never had an owner; here the sent claim is checked.
#[tokio::test]
async fn test_stateful_pod_control_retain_deletion_policy_update() {
    let (setup, set) = (over_api(), set(1).build());
    setup.api.load(&PODS, pod(&set, 0).text());
    setup.load_claim(&claim(&set).owner(json!(set.controller_reference())));
    update(&setup, &set).await;
    let mut expected = writes_of_claim_and_pod().to_vec();
    // Removing an owner needs no live read of the set.
    expected.remove(1);
    assert_eq!(setup.requests(), expected);
    assert_eq!(setup.sent(Verb::Update, CLAIMS), claim(&set).json());
    assert_eq!(stored_owners(&setup), Value::Null);
    assert_eq!(setup.recorder.drain(), [UPDATED]);
}

#[tokio::test]
async fn test_stateful_pod_control_retention_policy_update() {
    let setup = over_api();
    let set = set(1).retention("Retain", "Delete").build();
    setup.api.load(&PODS, pod(&set, 0).text());
    setup.load_claim(&claim(&set));
    setup.show_written_claims();
    update(&setup, &set).await;
    assert_eq!(setup.requests(), writes_of_claim_and_pod());
    let cached = setup.claims.get(NAMESPACE, CLAIM).unwrap();
    assert_eq!(*cached.owner_references, [set.controller_reference()]);
    assert_eq!(setup.recorder.drain(), [UPDATED]);
}

#[tokio::test]
async fn test_stateful_pod_control_retention_policy_update_missing_claims() {
    let setup = over_api();
    let set = set(1).retention("Retain", "Delete").build();
    setup.api.load(&PODS, pod(&set, 0).text());
    setup.show_written_claims();
    update(&setup, &set).await;
    assert!(setup.requests().is_empty());

    setup.load_claim(&claim(&set));
    update(&setup, &set).await;
    let cached = setup.claims.get(NAMESPACE, CLAIM).unwrap();
    assert_eq!(*cached.owner_references, [set.controller_reference()]);
    assert_eq!(setup.recorder.drain(), [UPDATED]);
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
