//! Names that relate objects to sets.

use crate::model::Set;

/// Splits a name at its ordinal.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('-')
}

/// The names of a set's claims without their ordinals.
pub(super) fn claim_prefixes(set: &Set) -> impl Iterator<Item = String> {
    let name = &set.metadata.name;
    let templates = set.spec.volume_claim_templates.iter();
    templates.map(move |template| format!("{}-{name}", template.metadata.name))
}
