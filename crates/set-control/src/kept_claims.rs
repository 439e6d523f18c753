//! Release of claims that a set keeps.

use statefulset_controller_util::error::Aggregate;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use statefulset_pod_control::{PodSlot, SetPodControl};
use tokio::task::coop::consume_budget;

use crate::error::Error;

/// Removes pods from the owners of claims that the set keeps. An earlier scale-down may have added
/// them, and such a claim must outlive its pod even if the sync stops early. `desired` holds the
/// desired pods that the sync has not processed. Tries every pod despite errors.
///
/// # Errors
///
/// Claims can't be written.
pub(crate) async fn release_kept_claims(
    set: &StatefulSet,
    pod_control: &SetPodControl<'_>,
    desired: &[PodSlot],
    condemned: &[PodSlot],
) -> Result<(), Error> {
    let policy = set.spec.claim_retention_policy.when_scaled;
    let goes_with_pod = policy == ClaimRetentionPolicyType::Delete;
    let condemned = if goes_with_pod { &[] } else { condemned };
    let existing = |slot: &&PodSlot| slot.existing().is_some();
    let mut errors = Vec::new();
    for slot in desired.iter().chain(condemned).filter(existing) {
        consume_budget().await;
        let released = pod_control.release_claims(slot).await;
        errors.extend(released.err().map(Error::from));
    }
    Aggregate::join(errors)
}
