//! Claims of an earlier pod with the same name.

use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::{self, owner_reference};
use statefulset_controller_util::testing::upstream::set;

use super::fixtures::{POD, owned, reference, slot};
use crate::stateful_set_utils::Owner;
use crate::tests::world::ApiWorld;

/// State of a claim.
#[derive(Clone, Copy)]
enum State {
    Missing,
    Exists,
    /// Owned by a pod of the same name with another uid.
    Stale,
    /// Owned by the pod.
    WithRef,
}

fn set_of(states: &[State]) -> StatefulSet {
    let set = super::fixtures::named_set(set(1), "set", "set-uid")
        .with(
            "spec.selector.matchLabels",
            serde_json::json!({"key": "value"}),
        )
        .without("spec.volumeClaimTemplates")
        .retention("Delete", "Retain");
    let templates = (0..states.len()).map(|index| format!("claim-{index}"));
    templates
        .fold(set, |set, name| set.claim_template(&name))
        .build()
}

/// Returns the stale claim of the pod `set-3` with this uid, whose claims have these states.
fn stale_claim(states: &[State], uid: &str) -> Option<String> {
    let (world, set) = (ApiWorld::new(), set_of(states));
    for (index, state) in states.iter().enumerate() {
        let claim = builders::claim(&set, &format!("claim-{index}"), 3);
        let owner = |uid| owner_reference(POD, "set-3", uid, None);
        match state {
            State::Missing => {}
            State::Exists => world.put_claim(&claim),
            State::Stale => world.put_claim(&claim.owner(owner("stale"))),
            State::WithRef => world.put_claim(&claim.owner(owner("123"))),
        }
    }
    let control = &world.control;
    let control = control.for_sync(&set);
    let stale = control.pod_claim_is_stale(&slot(3, "set-3", uid)).unwrap();
    stale.map(|claim| claim.name.to_string())
}

/// Upstream returns only whether a claim is stale; here its name is returned.
mod test_pod_claim_is_stale {
    use super::State::{Exists, Missing, Stale, WithRef};
    use super::*;

    #[track_caller]
    fn check(states: &[State], stale: Option<&str>) {
        assert_eq!(stale_claim(states, "123").as_deref(), stale);
    }

    #[test]
    fn all_missing() {
        check(&[Missing, Missing], None);
    }

    #[test]
    fn no_claims() {
        check(&[], None);
    }

    #[test]
    fn exists() {
        check(&[Missing, Exists], None);
    }

    #[test]
    fn all_refs() {
        check(&[WithRef, WithRef], None);
    }

    #[test]
    fn stale_exists() {
        check(&[Stale, Exists], Some("claim-0-set-3"));
    }

    #[test]
    fn stale_missing() {
        check(&[Stale, Missing], Some("claim-0-set-3"));
    }

    #[test]
    fn with_ref_stale() {
        check(&[WithRef, Stale], Some("claim-1-set-3"));
    }

    #[test]
    fn with_ref_no_uid() {
        let stale = stale_claim(&[WithRef], "");
        assert_eq!(stale.as_deref(), Some("claim-0-set-3"));
    }
}

#[test]
fn test_has_stale_owner_ref() {
    let claim = owned([
        reference(POD, "bob", "123", None),
        reference(POD, "shirley", "456", None),
    ]);
    for (name, uid, stale) in [
        ("bob", "123", false),
        ("shirley", "789", true),
        ("yvonne", "345", false),
    ] {
        let slot = slot(0, name, uid);
        let owner = Owner::pod(&slot);
        assert_eq!(owner.has_stale_owner_ref(&claim), stale, "{name}");
    }
}
