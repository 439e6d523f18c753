//! Fields that a request can't change and therefore can't own.
//!
//! Upstream: the `GetResetFields` and `GetResetFieldsFilter` of each resource's strategies.

use std::sync::LazyLock;

use super::path::PathElement;
use super::set::Set;
use super::typed::Comparison;
use crate::kinds::{Kind, Subresource};

/// Fields that the server writes and no manager owns.
static SYSTEM_FIELDS: LazyLock<Set> = LazyLock::new(|| {
    Set::from([
        ["apiVersion"].as_slice(),
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// The wildcard for any step of a pattern.
const ANY: &str = "*";

/// The fields that a request through an object or subresource can change.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    /// All fields except these and their children.
    Exclude(Set),
    /// Only the fields that match these patterns.
    Only(&'static [&'static [&'static str]]),
}

/// Removes the fields that no manager may own.
pub(crate) fn without_system_fields(set: &Set) -> Set {
    set.difference(&SYSTEM_FIELDS)
}

impl Filter {
    /// Returns the filter of requests through `subresource` (empty: the object itself) of a `kind`.
    pub(crate) fn of(kind: &Kind, subresource: &str) -> Self {
        Self::Exclude(match (&*kind.storage, subresource) {
            ("pods", "ephemeralcontainers") => {
                return Self::Only(&[&["spec", "ephemeralContainers"]]);
            }
            ("pods", "status") => Set::from([
                ["spec"].as_slice(),
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ]),
            ("certificatesigningrequests", "") => Set::from([["spec"].as_slice(), &["status"]]),
            ("certificatesigningrequests", "approval") => {
                Set::from([["spec"].as_slice(), &["status", "certificate"]])
            }
            ("deployments", "status") => Set::from([["spec"].as_slice(), &["metadata", "labels"]]),
            // A status write changes no other member either, but can own it.
            (_, "status") if kind.custom.is_some() => {
                Set::from([["metadata"].as_slice(), &["spec"]])
            }
            (_, "status") => Set::from([["spec"].as_slice()]),
            (_, "" | "finalize") if kind.serves(Subresource::Status) => {
                Set::from([["status"].as_slice()])
            }
            _ => Set::EMPTY,
        })
    }

    /// Returns the part of the set that the request can change.
    pub(crate) fn apply(&self, set: &Set) -> Set {
        match self {
            Self::Exclude(fields) if fields.is_empty() => set.clone(),
            Self::Exclude(fields) => set.recursive_difference(fields),
            Self::Only(patterns) => only(set, patterns),
        }
    }

    /// Returns the differences that the request can have made.
    pub(crate) fn apply_to(&self, comparison: &Comparison) -> Comparison {
        Comparison {
            added: self.apply(&comparison.added),
            modified: self.apply(&comparison.modified),
            removed: self.apply(&comparison.removed),
        }
    }
}

fn only(set: &Set, patterns: &[&[&str]]) -> Set {
    set.map(|node| {
        let mut rests = Vec::new();
        for pattern in patterns {
            if let Some((step, rest)) = pattern.split_first()
                && (*step == ANY || node.element == PathElement::field(step))
            {
                rests.push(rest);
            }
        }
        if rests.iter().any(|rest| rest.is_empty()) {
            (node.member, node.children.clone())
        } else {
            let matched = !rests.is_empty();
            (node.member && matched, only(&node.children, &rests))
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    #[test]
    fn status_changes_only_through_its_subresource() {
        let sets = kinds::by_resource("apps", "v1", "statefulsets").unwrap();
        let set = Set::from([["spec", "replicas"].as_slice(), &["status", "replicas"]]);
        let main = Filter::of(sets, "").apply(&set);
        assert_eq!(main, Set::from([["spec", "replicas"].as_slice()]));
        let status = Filter::of(sets, "status").apply(&set);
        assert_eq!(status, Set::from([["status", "replicas"].as_slice()]));
        let maps = kinds::by_resource("", "v1", "configmaps").unwrap();
        assert_eq!(Filter::of(maps, "").apply(&set), set);
    }

    #[test]
    fn status_writes_of_custom_resources_own_all_but_metadata_and_spec() {
        let definition = json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "versions": [
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}},
            ]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        let widgets = kinds::of_definition(&definition).remove(0);
        let set = Set::from([
            ["metadata", "labels"].as_slice(),
            &["spec", "size"],
            &["status", "ready"],
            &["extra", "x"],
        ]);
        let status = Filter::of(&widgets, "status").apply(&set);
        let wanted = Set::from([["status", "ready"].as_slice(), &["extra", "x"]]);
        assert_eq!(status, wanted);
        let main = Filter::of(&widgets, "").apply(&set);
        let wanted = Set::from([
            ["metadata", "labels"].as_slice(),
            &["spec", "size"],
            &["extra", "x"],
        ]);
        assert_eq!(main, wanted);
    }
}
