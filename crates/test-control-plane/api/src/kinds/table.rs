//! All rows, by group.

mod api_extensions;
mod apps;
mod authentication;
mod authorization;
mod coordination;
mod core;
mod events;
mod policy;
mod rbac;
mod storage;

pub use authentication::TOKEN_REQUEST;

use super::{Field, Kind, NameRule, Trait, Verb};

/// The groups in discovery order.
const GROUPS: &[&[Kind]] = &[
    core::KINDS,
    apps::KINDS,
    events::KINDS,
    authentication::KINDS,
    authorization::KINDS,
    policy::KINDS,
    rbac::KINDS,
    storage::KINDS,
    api_extensions::KINDS,
    coordination::KINDS,
];

static ALL: [Kind; count()] = flatten();

/// All served resources.
pub static KINDS: &[Kind] = &ALL;

const fn count() -> usize {
    let mut sum = 0;
    let mut group = 0;
    while group < GROUPS.len() {
        sum += GROUPS[group].len();
        group += 1;
    }
    sum
}

const fn flatten() -> [Kind; count()] {
    let mut all = [core::KINDS[0]; count()];
    let (mut group, mut row, mut at) = (0, 0, 0);
    while at < all.len() {
        if row == GROUPS[group].len() {
            group += 1;
            row = 0;
        } else {
            all[at] = GROUPS[group][row];
            row += 1;
            at += 1;
        }
    }
    all
}

/// Builds a row for a plain namespaced kind in the group's `v1`.
const fn namespaced(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Kind {
    Kind {
        group,
        version: "v1",
        kind,
        plural,
        singular,
        storage: plural,
        namespaced: true,
        short_names: &[],
        categories: &[],
        verbs: Verb::ALL,
        subresources: &[],
        traits: &[],
        fields: &[],
        name_rule: NameRule::Subdomain,
        custom: None,
    }
}

/// As [`namespaced`], for a cluster-scoped kind.
const fn cluster(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Kind {
    Kind {
        namespaced: false,
        ..namespaced(group, kind, plural, singular)
    }
}

/// Builds a row for a review, which is answered immediately and not stored.
const fn review(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Kind {
    Kind {
        verbs: &[Verb::Create],
        traits: &[Trait::Virtual],
        ..cluster(group, kind, plural, singular)
    }
}

/// Builds a field for selectors; empty if the object lacks it.
const fn field(label: &'static str, pointer: &'static str) -> Field {
    Field {
        label,
        pointer,
        otherwise: None,
        default: "",
    }
}
