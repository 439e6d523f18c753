//! `events.k8s.io/v1`: the second form of the core group's events.

use super::namespaced;
use crate::kinds::{Kind, Trait};

const FIELDS: &[(&str, &str)] = &[
    ("regarding.kind", "/involvedObject/kind"),
    ("regarding.namespace", "/involvedObject/namespace"),
    ("regarding.name", "/involvedObject/name"),
    ("regarding.uid", "/involvedObject/uid"),
    ("regarding.apiVersion", "/involvedObject/apiVersion"),
    (
        "regarding.resourceVersion",
        "/involvedObject/resourceVersion",
    ),
    ("regarding.fieldPath", "/involvedObject/fieldPath"),
    ("reason", "/reason"),
    ("reportingController", "/reportingComponent"),
    ("type", "/type"),
];

pub(super) const KINDS: &[Kind] = &[Kind {
    short_names: &["ev"],
    traits: &[Trait::CreateOnUpdate, Trait::OwnFieldLabels, Trait::View],
    fields: FIELDS,
    ..namespaced("events.k8s.io", "Event", "events", "event")
}];
