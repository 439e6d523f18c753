//! `apps/v1`.

use super::namespaced;
use crate::kinds::{Kind, NameRule, Subresource, Trait};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        traits: &[Trait::RawData],
        ..namespaced(
            "apps",
            "ControllerRevision",
            "controllerrevisions",
            "controllerrevision",
        )
    },
    Kind {
        short_names: &["ds"],
        categories: &["all"],
        subresources: &[Subresource::Status],
        traits: &[Trait::Generation],
        ..namespaced("apps", "DaemonSet", "daemonsets", "daemonset")
    },
    Kind {
        short_names: &["deploy"],
        categories: &["all"],
        subresources: &[Subresource::Scale, Subresource::Status],
        traits: &[Trait::Generation],
        ..namespaced("apps", "Deployment", "deployments", "deployment")
    },
    Kind {
        short_names: &["rs"],
        categories: &["all"],
        subresources: &[Subresource::Scale, Subresource::Status],
        traits: &[Trait::Generation],
        ..namespaced("apps", "ReplicaSet", "replicasets", "replicaset")
    },
    Kind {
        short_names: &["sts"],
        categories: &["all"],
        subresources: &[Subresource::Scale, Subresource::Status],
        traits: &[Trait::Generation],
        name_rule: NameRule::Label,
        ..namespaced("apps", "StatefulSet", "statefulsets", "statefulset")
    },
];
