//! `rbac.authorization.k8s.io/v1`.

use super::{cluster, namespaced};
use crate::kinds::{Kind, NameRule, Trait};

const GROUP: &str = "rbac.authorization.k8s.io";

const fn named_by_segment(kind: Kind) -> Kind {
    Kind {
        traits: &[Trait::CreateOnUpdate],
        name_rule: NameRule::PathSegment,
        ..kind
    }
}

pub(super) const KINDS: &[Kind] = &[
    named_by_segment(cluster(
        GROUP,
        "ClusterRoleBinding",
        "clusterrolebindings",
        "clusterrolebinding",
    )),
    named_by_segment(cluster(GROUP, "ClusterRole", "clusterroles", "clusterrole")),
    named_by_segment(namespaced(
        GROUP,
        "RoleBinding",
        "rolebindings",
        "rolebinding",
    )),
    named_by_segment(namespaced(GROUP, "Role", "roles", "role")),
];
