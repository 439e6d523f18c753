//! `events.k8s.io/v1`: the second form of the core group's events.

use super::{field, namespaced};
use crate::kinds::{Field, Kind, Trait};

const FIELDS: &[Field] = &[
    field("regarding.kind", "/involvedObject/kind"),
    field("regarding.namespace", "/involvedObject/namespace"),
    field("regarding.name", "/involvedObject/name"),
    field("regarding.uid", "/involvedObject/uid"),
    field("regarding.apiVersion", "/involvedObject/apiVersion"),
    field(
        "regarding.resourceVersion",
        "/involvedObject/resourceVersion",
    ),
    field("regarding.fieldPath", "/involvedObject/fieldPath"),
    field("reason", "/reason"),
    field("reportingController", "/reportingComponent"),
    field("type", "/type"),
];

pub(super) const KINDS: &[Kind] = &[Kind {
    short_names: &["ev"],
    traits: &[Trait::CreateOnUpdate, Trait::OwnFieldLabels, Trait::View],
    fields: FIELDS,
    ..namespaced("events.k8s.io", "Event", "events", "event")
}];
