//! `policy/v1`.

use super::namespaced;
use crate::kinds::{Kind, Subresource, Trait};

pub(super) const KINDS: &[Kind] = &[Kind {
    short_names: &["pdb"],
    subresources: &[Subresource::Status],
    traits: &[Trait::Generation, Trait::NoUnconditionalUpdate],
    ..namespaced(
        "policy",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "poddisruptionbudget",
    )
}];
