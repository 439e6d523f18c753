//! Owners of a claim, case by case.

use std::sync::Arc;

use statefulset_controller_util::testing::builders::{self, Builder, owner_reference};

use super::*;
use crate::stateful_set_utils::NewPod;
use crate::stateful_set_utils::Ordinal;

const SET: (&str, &str) = ("apps/v1", "StatefulSet");
const POD: (&str, &str) = ("v1", "Pod");

/// Owner for a letter: `S` and `P` control, `s` and `p` own without controlling, `t` and `q` are an
/// earlier set and pod, `F` is another controller, `f` another owner.
fn reference(letter: char) -> Value {
    let controls = letter.is_ascii_uppercase().then_some(true);
    match letter {
        'S' | 's' => owner_reference(SET, "web", "web-uid", controls),
        'P' | 'p' => owner_reference(POD, "web-1", "web-1-uid", controls),
        't' => owner_reference(SET, "web", "old-uid", Some(true)),
        'q' => owner_reference(POD, "web-1", "old-uid", Some(true)),
        'F' | 'f' => owner_reference(("example.com/v1", "Backup"), "b", "b-uid", controls),
        other => panic!("{other}"),
    }
}

fn claim(owners: &str) -> Builder<Claim> {
    let set = builders::set("web").build();
    let claim = builders::claim(&set, "data", 1);
    owners
        .chars()
        .fold(claim, |claim, letter| claim.owner(reference(letter)))
}

/// Builds a set of `desired` pods: with 2 the set wants the pod, with 1 it is condemned.
fn set(policy: (&str, &str), desired: i32) -> StatefulSet {
    let set = builders::set("web").claim_template("data");
    set.retention(policy.0, policy.1).replicas(desired).build()
}

fn pod() -> PodSlot {
    let pod = builders::pod(&builders::set("web").build(), 1).build();
    PodSlot::Existing(Ordinal::from(1), Arc::new(pod))
}

fn missing_pod() -> PodSlot {
    PodSlot::Missing(NewPod::new(&set(RETAIN, 2), "web-x", Ordinal::from(1)))
}

/// Updates the claim's owners. Returns its JSON, and true if an owner was added.
fn rewrite(claim: &Builder<Claim>, set: &StatefulSet) -> (Value, bool) {
    let mut live = claim.live();
    let adds = update_claim_owner_ref_for_set_and_pod(&mut live, set, &pod());
    (live.json, adds)
}

/// `whenScaled`, `whenDeleted`.
type Policy = (&'static str, &'static str);
const RETAIN: Policy = ("Retain", "Retain");
const ON_DELETE: Policy = ("Retain", "Delete");
const ON_SCALE: Policy = ("Delete", "Retain");
const ALWAYS: Policy = ("Delete", "Delete");
const UNKNOWN: Policy = ("Delete", "Later");
const ALL: [Policy; 5] = [RETAIN, ON_DELETE, ON_SCALE, ALWAYS, UNKNOWN];

#[test]
fn policy_decides_the_claims_owner() {
    // For each policy, the correct owners for a desired pod and for a condemned one.
    for (policy, desired, condemned) in [
        (RETAIN, "", ""),
        (ON_DELETE, "S", "S"),
        (ON_SCALE, "", "P"),
        (ALWAYS, "S", "P"),
        (UNKNOWN, "", ""),
    ] {
        for (count, expected) in [(2, desired), (1, condemned)] {
            let set = set(policy, count);
            for owners in ["", "S", "P", "SP"] {
                let claim = claim(owners).build();
                assert_eq!(
                    is_claim_owner_up_to_date(&claim, &set, &pod()),
                    owners == expected,
                    "{policy:?} {count} {owners:?}"
                );
                let rewritten = rewrite(&self::claim(owners), &set);
                let expected = (self::claim(expected).json(), !expected.is_empty());
                assert_eq!(rewritten, expected, "{policy:?} {count} {owners:?}");
            }
        }
    }
}

#[test]
fn unknown_policy_values_are_detected() {
    for (policy, unknown) in [
        (RETAIN, false),
        (ALWAYS, false),
        (UNKNOWN, true),
        (("Later", "Retain"), true),
    ] {
        assert_eq!(is_policy_unknown(&set(policy, 2)), unknown, "{policy:?}");
    }
}

#[test]
fn other_owners_are_ignored_and_stay_first() {
    let set = set(ON_DELETE, 2);
    for (owners, up_to_date, rewritten) in [
        ("fS", true, "fS"),
        ("f", false, "fS"),
        ("Pf", false, "fS"),
        ("PfSf", false, "ffS"),
    ] {
        let claim = claim(owners).build();
        let matches = is_claim_owner_up_to_date(&claim, &set, &pod());
        assert_eq!(matches, up_to_date, "{owners}");
        let (json, _) = rewrite(&self::claim(owners), &set);
        assert_eq!(json, self::claim(rewritten).json(), "{owners}");
    }
}

#[test]
fn stale_claim_owners_are_never_changed() {
    for policy in ALL {
        for count in [1, 2] {
            for owners in ["t", "q", "tq", "St", "Fq", "qP"] {
                // Only the first of several references to one name counts.
                let stale = owners != "St";
                let claim = claim(owners).build();
                let set = set(policy, count);
                let up_to_date = is_claim_owner_up_to_date(&claim, &set, &pod());
                assert!(up_to_date || !stale, "{policy:?} {count} {owners}");
            }
        }
    }
    // `St` isn't stale, but the reference to an earlier set counts as an unexpected controller.
    let claim = claim("St").build();
    assert!(!is_claim_owner_up_to_date(
        &claim,
        &set(ON_DELETE, 2),
        &pod()
    ));
    assert!(!is_claim_owner_up_to_date(&claim, &set(RETAIN, 2), &pod()));
}

#[test]
fn first_reference_to_the_pods_name_decides_staleness() {
    for (owners, stale, stale_for_missing) in [
        ("", false, false),
        ("S", false, false),
        ("t", false, false),
        ("P", false, true),
        ("p", false, true),
        ("q", true, true),
        ("Pq", false, true),
        ("qP", true, true),
        ("F", false, false),
    ] {
        let claim = claim(owners).build();
        assert_eq!(
            Owner::pod(&pod()).has_stale_owner_ref(&claim),
            stale,
            "{owners}"
        );
        // A missing pod has no uid yet, so any owner of its name is an earlier pod.
        let missing = Owner::pod(&missing_pod()).has_stale_owner_ref(&claim);
        assert_eq!(missing, stale_for_missing, "{owners}");
    }
}

#[test]
fn references_match_by_version_kind_and_name() {
    for (kind, name) in [
        (("apps/v1beta1", "StatefulSet"), "web"),
        (("apps/v1", "Deployment"), "web"),
        (("apps/v1", "StatefulSet"), "db"),
        (("v1", "Pod"), "web-2"),
    ] {
        let owner = owner_reference(kind, name, "old-uid", None);
        let claim = claim("").owner(owner).build();
        let set = set(RETAIN, 2);
        assert!(
            !Owner::pod(&pod()).has_stale_owner_ref(&claim),
            "{kind:?} {name}"
        );
        assert!(is_claim_owner_up_to_date(&claim, &set, &pod()));
        let json = json!({"metadata": {"ownerReferences": [
            {"apiVersion": kind.0, "kind": kind.1, "name": name, "uid": "old-uid", "future": 1},
        ]}});
        let before = json.clone();
        let mut live = Live {
            object: claim,
            json,
        };
        update_claim_owner_ref_for_set_and_pod(&mut live, &set, &pod());
        assert_eq!(live.json, before, "{kind:?} {name}");
    }
}

#[test]
fn other_and_earlier_controllers_are_unexpected() {
    for (owners, unexpected) in [
        ("", false),
        ("S", false),
        ("SP", false),
        ("f", false),
        ("F", true),
        ("SF", true),
        ("t", true),
        ("q", true),
        ("St", true),
        ("fSPq", true),
    ] {
        let claim = claim(owners).build();
        for policy in [ON_DELETE, ON_SCALE, ALWAYS, UNKNOWN] {
            let found = has_unexpected_controller(&claim, &set(policy, 2), &pod());
            assert_eq!(found, unexpected, "{policy:?} {owners}");
        }
        let retained = has_unexpected_controller(&claim, &set(RETAIN, 2), &pod());
        assert!(!retained, "{owners}");
    }
}

#[test]
fn unexpected_controller_removes_our_references() {
    for policy in [ON_DELETE, ON_SCALE, ALWAYS] {
        for (owners, up_to_date, rewritten) in [
            ("F", true, "F"),
            ("SF", false, "F"),
            ("FP", false, "F"),
            ("sFp", false, "F"),
        ] {
            for count in [1, 2] {
                let (claim, set) = (claim(owners).build(), set(policy, count));
                let matches = is_claim_owner_up_to_date(&claim, &set, &pod());
                assert_eq!(matches, up_to_date, "{policy:?} {owners}");
                let expected = (self::claim(rewritten).json(), false);
                let rewritten = rewrite(&self::claim(owners), &set);
                assert_eq!(rewritten, expected, "{policy:?} {owners}");
            }
        }
    }
    // If both policies retain, no controller is unexpected, yet our references are removed.
    let claim = claim("FS").build();
    assert!(!is_claim_owner_up_to_date(&claim, &set(RETAIN, 2), &pod()));
}

#[test]
fn non_controller_references_of_ours_are_replaced() {
    let claim = claim("s").build();
    let set = set(ON_DELETE, 2);
    assert!(!is_claim_owner_up_to_date(&claim, &set, &pod()));
    let (json, _) = rewrite(&self::claim("s"), &set);
    assert_eq!(json, self::claim("S").json());
}

#[test]
fn uid_under_another_name_is_not_added_again() {
    let alias = owner_reference(("apps/v1", "StatefulSet"), "alias", "web-uid", None);
    let claim = claim("").owner(alias);
    assert_eq!(rewrite(&claim, &set(ON_DELETE, 2)), (claim.json(), false));
}

#[test]
fn owner_update_changes_only_the_owners() {
    let claim = claim("S")
        .with("metadata.future", "x")
        .with("spec.future", 1.5)
        .with("metadata.ownerReferences.0.future", true);
    let (json, _) = rewrite(&claim, &set(RETAIN, 2));
    assert_eq!(json, claim.orphan().json());
}

#[test]
fn odd_metadata_accepts_the_owner() {
    for json in [json!(null), json!([1]), json!({"metadata": ["x"]})] {
        let object = claim("").build();
        let mut live = Live { object, json };
        let set = set(ALWAYS, 2);
        assert!(update_claim_owner_ref_for_set_and_pod(
            &mut live,
            &set,
            &pod()
        ));
        assert_eq!(
            live.json["metadata"]["ownerReferences"][0]["uid"],
            "web-uid"
        );
    }
}
