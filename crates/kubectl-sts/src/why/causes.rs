//! Causes, by the kind of the objects that show them.

pub(super) mod container;
pub(super) mod deletion;
pub(super) mod flapping;
pub(super) mod names;
pub(super) mod node;
pub(super) mod opted;
pub(super) mod quota;
pub(super) mod readiness;
pub(super) mod refused;
pub(super) mod replaced;
pub(super) mod retries;
pub(super) mod rollout;
pub(super) mod scheduling;
pub(super) mod storage;
