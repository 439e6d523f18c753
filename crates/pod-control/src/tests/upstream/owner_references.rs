//! Comparison of owner references with each other and with their objects.

use kube_apimachinery::owner_reference::OwnerReference;

use super::fixtures::{POD, owned, reference, slot};
use crate::stateful_set_utils::Owner;

/// True if the owners differ; ignores order, uid and the `controller` flag.
///
/// Upstream: `ownerRefsChanged`.
pub(super) fn owner_refs_changed(before: &[OwnerReference], after: &[OwnerReference]) -> bool {
    let keys = |references: &[OwnerReference]| {
        let key = |r: &OwnerReference| (r.api_version.clone(), r.kind.clone(), r.name.clone());
        let mut keys: Vec<_> = references.iter().map(key).collect();
        keys.sort();
        keys
    };
    keys(before) != keys(after)
}

mod test_owner_refs_changed {
    use super::*;

    /// Parses references written as `apiVersion/kind/name`.
    fn references(texts: &[&str]) -> Vec<OwnerReference> {
        let parse = |text: &&str| {
            let mut parts = text.split('/').map(Box::from);
            let mut next = || parts.next().expect("the text has three parts");
            OwnerReference {
                api_version: next(),
                kind: next(),
                name: next(),
                ..OwnerReference::default()
            }
        };
        texts.iter().map(parse).collect()
    }

    #[track_caller]
    fn check(before: &[&str], after: &[&str], changed: bool) {
        let (before, after) = (references(before), references(after));
        assert_eq!(owner_refs_changed(&before, &after), changed);
    }

    #[test]
    fn case_1() {
        check(&["v1/pod/foo"], &[], true);
    }

    #[test]
    fn case_2() {
        check(&["v1/pod/foo"], &["v1/pod/foo"], false);
    }

    #[test]
    fn case_3() {
        check(&["v1/pod/foo"], &["v1/pod/bar"], true);
    }

    #[test]
    fn case_4() {
        let (bob, alice) = (["v1/pod/foo", "v1/set/bob"], ["v1/pod/foo", "v1/set/alice"]);
        check(&bob, &alice, true);
    }

    #[test]
    fn case_5() {
        let both = ["v1/pod/foo", "v1/set/bob"];
        check(&both, &both, false);
    }

    #[test]
    fn case_6() {
        let twice = ["v1/pod/foo", "v1/set/bob", "v1/set/bob"];
        check(&["v1/pod/foo", "v1/set/bob"], &twice, true);
    }

    #[test]
    fn case_7() {
        let reversed = ["v1/set/bob", "v1/pod/foo"];
        check(&["v1/pod/foo", "v1/set/bob"], &reversed, false);
    }
}

mod test_matches_ref {
    use super::*;

    #[track_caller]
    fn check(api_version: &str, name: &str, uid: &str, expected: bool) {
        let reference = reference((api_version, "Pod"), "fred", "abc", None);
        let pod = slot(0, name, uid);
        assert_eq!(Owner::pod(&pod).matches_ref(&reference), expected);
    }

    #[test]
    fn full_match() {
        check("v1", "fred", "abc", true);
    }

    #[test]
    fn match_without_uid() {
        check("v1", "fred", "not-matching", true);
    }

    #[test]
    fn mismatch_name() {
        check("v1", "joan", "abc", false);
    }

    #[test]
    fn wrong_schema() {
        check("beta2", "fred", "abc", false);
    }
}

mod test_has_owner_ref {
    use super::*;

    #[track_caller]
    fn check(uid: &str, expected: bool) {
        let claim = owned([
            reference(POD, "a", "123", Some(true)),
            reference(POD, "b", "456", Some(false)),
            reference(POD, "c", "789", None),
        ]);
        assert_eq!(
            Owner::pod(&slot(0, "d", uid)).has_owner_ref(&claim),
            expected
        );
    }

    #[test]
    fn uid_123() {
        check("123", true);
    }

    #[test]
    fn uid_456() {
        check("456", true);
    }

    #[test]
    fn uid_789() {
        check("789", true);
    }

    #[test]
    fn uid_012() {
        check("012", false);
    }
}
