//! Fields that a request can't change, and whose ownership it therefore doesn't get.
//!
//! Upstream: the `GetResetFields` and `GetResetFieldsFilter` of each resource's strategies.

use std::sync::LazyLock;

use super::path::PathElement;
use super::set::Set;
use super::typed::Comparison;
use crate::kinds::{Kind, Subresource};

/// What nobody owns: the server writes it.
static NOBODYS: LazyLock<Set> = LazyLock::new(|| {
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

/// What stands for any step in a pattern.
const ANY: &str = "*";

/// What a request through a subresource or the object itself can change.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    /// All but these fields and their parts.
    Exclude(Set),
    /// What these patterns lead to.
    Only(&'static [&'static [&'static str]]),
}

/// The set without what nobody owns.
pub(crate) fn without_nobodys(set: &Set) -> Set {
    set.difference(&NOBODYS)
}

impl Filter {
    /// What a request through `subresource` (empty: the object itself) can change in objects of
    /// `kind`.
    pub(crate) fn of(kind: &Kind, subresource: &str) -> Self {
        Self::Exclude(match (kind.storage, subresource) {
            ("pods", "ephemeralcontainers") => {
                return Self::Only(&[&["spec", "ephemeralContainers"]]);
            }
            ("pods", "resize") => {
                return Self::Only(&[
                    &["spec", "containers", ANY, "resources"],
                    &["spec", "containers", ANY, "resizePolicy"],
                    &["spec", "initContainers", ANY, "resources"],
                    &["spec", "initContainers", ANY, "resizePolicy"],
                    &["spec", "resources"],
                ]);
            }
            ("pods", "status") => Set::from([
                ["spec"].as_slice(),
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ]),
            ("deployments", "status") => Set::from([["spec"].as_slice(), &["metadata", "labels"]]),
            (_, "status") => Set::from([["spec"].as_slice()]),
            (_, "" | "finalize") if kind.serves(Subresource::Status) => {
                Set::from([["status"].as_slice()])
            }
            _ => Set::EMPTY,
        })
    }

    /// What of the set the request can change.
    pub(crate) fn apply(&self, set: &Set) -> Set {
        match self {
            Self::Exclude(fields) if fields.is_empty() => set.clone(),
            Self::Exclude(fields) => set.recursive_difference(fields),
            Self::Only(patterns) => only(set, patterns),
        }
    }

    /// What of the differences the request can have made.
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
    use crate::managed_fields::fields_v1::{decode, encode};

    #[test]
    fn a_resize_changes_sizes_only() {
        let pods = kinds::by_resource("", "v1", "pods").unwrap();
        let set = decode(&json!({
            "f:metadata": {"f:labels": {}},
            "f:spec": {"f:nodeName": {}, "f:containers": {"k:{\"name\":\"c\"}": {
                ".": {},
                "f:image": {},
                "f:resources": {".": {}, "f:limits": {"f:cpu": {}}},
            }}},
        }));
        let left = Filter::of(pods, "resize").apply(&set.unwrap());
        let wanted = json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
            ".": {},
            "f:resources": {".": {}, "f:limits": {"f:cpu": {}}},
        }}}});
        assert_eq!(encode(&left), wanted);
    }

    #[test]
    fn the_status_changes_through_its_subresource_only() {
        let sets = kinds::by_resource("apps", "v1", "statefulsets").unwrap();
        let set = Set::from([["spec", "replicas"].as_slice(), &["status", "replicas"]]);
        let main = Filter::of(sets, "").apply(&set);
        assert_eq!(main, Set::from([["spec", "replicas"].as_slice()]));
        let status = Filter::of(sets, "status").apply(&set);
        assert_eq!(status, Set::from([["status", "replicas"].as_slice()]));
        let maps = kinds::by_resource("", "v1", "configmaps").unwrap();
        assert_eq!(Filter::of(maps, "").apply(&set), set);
    }
}
