//! `coordination.k8s.io/v1`.

use super::namespaced;
use crate::kinds::{Kind, Trait};

pub(super) const KINDS: &[Kind] = &[Kind {
    traits: &[Trait::NoUnconditionalUpdate, Trait::CreateOnUpdate],
    ..namespaced("coordination.k8s.io", "Lease", "leases", "lease")
}];
