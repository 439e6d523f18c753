//! Identity, storage and claim owners of a set's pods.
//!
//! Upstream: `stateful_set_utils.go`.

mod claim_sizes;
mod identity;
mod new_pod;
mod retention;
mod slot;
mod storage;

pub use claim_sizes::{ClaimSizes, raise_request};
pub(crate) use identity::update_identity;
pub use identity::{
    Ordinal, identity_matches, membership, ordinal, persistent_volume_claim_name, pod_name,
};
pub use new_pod::NewPod;
pub(crate) use retention::{
    Owner, is_policy_unknown, may_keep_owners, remove_pod_refs,
    update_claim_owner_ref_for_set_and_pod,
};
pub use retention::{
    has_non_controller_owner, has_unexpected_controller, is_claim_owner_up_to_date,
};
pub use slot::PodSlot;
pub use storage::{NewClaim, persistent_volume_claims, storage_matches};
pub(crate) use storage::{claim_name, update_storage};
