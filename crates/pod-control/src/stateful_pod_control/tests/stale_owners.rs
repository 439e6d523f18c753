//! Claims with references to earlier sets and pods, as in restored backups.

use serde_json::Value;

use super::*;

fn former_set() -> Value {
    owner_reference(("apps/v1", "StatefulSet"), "web", "former-uid", Some(true))
}

fn former_pod(ordinal: u32) -> Value {
    let name = format!("web-{ordinal}");
    owner_reference(("v1", "Pod"), &name, "former-uid", None)
}

fn live_pod(ordinal: u32) -> Value {
    let (name, uid) = (format!("web-{ordinal}"), format!("web-{ordinal}-uid"));
    owner_reference(("v1", "Pod"), &name, &uid, None)
}

/// Stores a claim of the pod with this ordinal.
fn put_claim(world: &World, set: &StatefulSet, ordinal: i32, owners: &[Value]) {
    let claim = builders::claim(set, "data", ordinal);
    let claim = owners.iter().cloned().fold(claim, Builder::owner);
    world.put_claim(&claim);
}

fn owners_of(world: &World, claim: &str) -> Vec<String> {
    owners(&world.claim(claim).unwrap())
}

#[tokio::test]
async fn stale_owners_go_with_the_pod() {
    let world = World::new();
    let set = web().retention("Retain", "Delete").build();
    let stale = [former_set(), former_pod(1), live_pod(1), foreign_owner()];
    put_claim(&world, &set, 1, &stale);
    let slot = existing(&builders::pod(&set, 1));
    let control = world.control.for_sync(&set);
    control.release_claims(&slot).await.unwrap();
    assert_eq!(owners_of(&world, "data-web-1"), ["b"]);
}

#[tokio::test]
async fn references_of_other_names_stay_when_the_pod_goes() {
    let world = World::new();
    let set = web().retention("Retain", "Delete").build();
    let other_set = owner_reference(("apps/v1", "StatefulSet"), "db", "db-uid", None);
    let owners = [other_set, former_pod(0), set_owner(), live_pod(1)];
    put_claim(&world, &set, 1, &owners);
    let slot = existing(&builders::pod(&set, 1));
    let control = world.control.for_sync(&set);
    control.release_claims(&slot).await.unwrap();
    assert_eq!(owners_of(&world, "data-web-1"), ["db", "web-0", "web"]);
}

#[tokio::test]
async fn stale_owner_next_to_the_live_pod_is_removed_with_it() {
    for (scaled, deleted) in [
        ("Retain", "Retain"),
        ("Retain", "Delete"),
        ("Delete", "Delete"),
    ] {
        for stale in [former_set(), former_pod(1)] {
            let world = World::new();
            let set = web().retention(scaled, deleted).build();
            put_claim(&world, &set, 1, &[stale, live_pod(1)]);
            let slot = existing(&builders::pod(&set, 1));
            let control = world.control.for_sync(&set);
            assert!(!control.claims_match_retention_policy(&slot).unwrap());
            let updated = control.update_pod_claim_for_retention_policy(&slot);
            updated.await.unwrap();
            assert_eq!(
                owners_of(&world, "data-web-1"),
                [""; 0],
                "{scaled} {deleted}"
            );
            assert_eq!(world.requests(Call::ReadSet), 0, "no owner was added");
        }
    }
}

#[tokio::test]
async fn stale_owner_next_to_the_unwanted_set_is_removed_with_it() {
    let world = World::new();
    let set = web().retention("Retain", "Retain").build();
    put_claim(&world, &set, 1, &[former_pod(1), set_owner()]);
    let slot = existing(&builders::pod(&set, 1));
    let control = world.control.for_sync(&set);
    let updated = control.update_pod_claim_for_retention_policy(&slot);
    updated.await.unwrap();
    assert_eq!(owners_of(&world, "data-web-1"), [""; 0]);
}

/// An earlier set or pod was deleted with the policy to delete the claim: it will go.
#[tokio::test]
async fn claim_with_only_stale_owners_is_left_alone() {
    let owners = [
        vec![former_set()],
        vec![former_pod(1)],
        vec![former_set(), former_pod(1)],
        vec![former_pod(1), set_owner()],
    ];
    for owners in owners {
        let world = World::new();
        let set = web().retention("Delete", "Delete").build();
        put_claim(&world, &set, 1, &owners);
        let slot = existing(&builders::pod(&set, 1));
        let control = world.control.for_sync(&set);
        assert!(control.claims_match_retention_policy(&slot).unwrap());
        let updated = control.update_pod_claim_for_retention_policy(&slot);
        updated.await.unwrap();
        control.release_claims(&slot).await.unwrap();
        assert_eq!(world.requests(Call::UpdateClaim), 0, "{owners:?}");
    }
}

#[tokio::test]
async fn condemned_pod_keeps_a_claim_that_goes_with_it() {
    let world = World::new();
    let set = web().retention("Delete", "Delete").build();
    put_claim(&world, &set, 5, &[former_set(), live_pod(5)]);
    let slot = existing(&builders::pod(&set, 5));
    let control = world.control.for_sync(&set);
    assert!(control.claims_match_retention_policy(&slot).unwrap());
    let updated = control.update_pod_claim_for_retention_policy(&slot);
    updated.await.unwrap();
    assert_eq!(world.requests(Call::UpdateClaim), 0);
}
