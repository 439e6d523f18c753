//! Causes, by the kind of the objects that show them.

pub(super) mod container;
pub(super) mod deletion;
pub(super) mod readiness;
pub(super) mod refused;
pub(super) mod rollout;
pub(super) mod scheduling;
