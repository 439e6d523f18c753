//! Situations that the runs must reach, so that no rule passes vacuously.

mod fenced;
mod opted;
mod reach;

use std::collections::BTreeSet;

use crate::judges::{Case, Verdict};

/// The situations of runs without a fence whose sets opt in to nothing.
pub const SITUATIONS: &[&str] = &[
    "a claim is collected with its pod or set",
    "a claim is created",
    "a claim is deleted and created again",
    "a claim is given to a condemned pod",
    "a claim is given to its set",
    "a claim is taken back from a pod",
    "a claim is taken back from its set",
    "a claim loses stale owners together with its pod",
    "a claim of another controller is left alone",
    "a condemned pod that is unavailable is deleted",
    "a failed pod is replaced",
    "a lease is lost",
    "a parallel sync creates several pods",
    "a parallel sync deletes several condemned pods",
    "a pod gets the current revision below the partition",
    "a pod is adopted",
    "a pod is created while a lower one of a parallel set is unavailable",
    "a pod is force-deleted by a user",
    "a pod is released",
    "a pod of an OnDelete set gets the new revision",
    "a pod of an image that never becomes ready is replaced",
    "a pod with a name that is not canonical is left alone",
    "a process crashes",
    "a process crashes at a write",
    "a resource is listed again after a watch",
    "a revision is adopted",
    "a revision is created",
    "a revision is deleted",
    "a rollback raises an old revision",
    "a rollout completes",
    "a set is created again while old pods exist",
    "a set is deleted in the background",
    "a set is deleted in the foreground",
    "a set is orphaned and its pods are adopted",
    "a set is scaled down one by one",
    "a set is scaled to zero",
    "a set is synced while it is being deleted",
    "a set starts above ordinal zero",
    "a succeeded pod is replaced",
    "a sync begins on caches of different ages",
    "a sync begins on caches that are far behind",
    "a sync changes nothing",
    "a sync deletes one pod for an update",
    "a sync deletes several pods for an update",
    "a sync is postponed until the caches show its writes",
    "a takeover brings another version",
    "a takeover happens during a rollout",
    "a takeover happens during scaling",
    "a takeover happens",
    "a template gets a member of a newer API server",
    "a user's change outruns a claim's last look",
    "a write arrives after its process ended",
    "a write arrives after its sender lost the lease",
    "a write is rejected: already exists",
    "a write is rejected: conflict",
    "a write is rejected: forbidden",
    "a write is rejected: invalid",
    "a write is rejected: not found",
    "a write is rejected: too many requests",
    "a write is sent again after a GOAWAY",
    "a write never arrives",
    "an instance leads for the second time",
    "the response to a claim's change is lost",
    "the response to a pod's creation is lost",
    "the response to a pod's deletion is lost",
    "the response to a revision's creation is lost",
    "the response to a status is lost",
    "two sets run side by side",
];

/// The situations of runs with a fence.
pub const FENCE_SITUATIONS: &[&str] = &[
    "a claim is collected with its pod or set",
    "a claim is deleted and created again",
    "a namespace is handed back during a rollout",
    "a namespace is handed over during a rollout",
    "a policy is lost during a rollout",
    "a policy returns during a rollout",
    "a rollout completes",
    "another instance takes over",
    "another process of the built-in controller takes over",
    "the fence denies a write of the built-in controller",
    "the mirror denies a write of an instance",
    "the service ends: denied",
    "the service ends: foreign",
    "the service ends: label",
    "the service ends: left",
    "the service ends: policy",
    "the wrong controller's write is stored before every API server applies the fence",
];

/// The situations of runs whose sets opt in.
pub const OPT_IN_SITUATIONS: &[&str] = &[
    "a blocking pod is evicted",
    "a blocking pod is replaced",
    "a condition tells: CrashLoop",
    "a condition tells: EvictionRefused",
    "a condition tells: ImagePull",
    "a condition tells: InProgress",
    "a condition tells: MinReadySeconds",
    "a condition tells: OldRevisionBlocks",
    "a condition tells: OnDelete",
    "a condition tells: Partition",
    "a condition tells: PartitionKeepsBrokenPod",
    "a condition tells: Paused",
    "a condition tells: PodStarting",
    "a condition tells: ProgressDeadlineExceeded",
    "a condition tells: RemovalGate",
    "a condition tells: Repair",
    "a condition tells: RetryBackOff",
    "a condition tells: RolloutLimit",
    "a condition tells: Settled",
    "a condition tells: Terminating",
    "a condition tells: UnavailableBudget",
    "a pod is removed after the gate's time",
    "a pod is removed once its gate is lifted",
    "a set gets conditions",
    "an annotation cannot be used",
    "an annotation is corrected",
    "an eviction is forbidden",
    "an eviction is refused by a budget",
    "an instance with the gates takes over",
    "an instance without the gates takes over",
    "the conditions of a set vanish",
    "the removal of a pod is requested",
    "the request to remove a pod is withdrawn",
];

/// Returns the situations that a run reached.
pub fn reached(case: &Case<'_>, verdict: &Verdict) -> BTreeSet<&'static str> {
    let mut reached = BTreeSet::new();
    reach::processes(case, &mut reached);
    reach::requests(case, &mut reached);
    reach::syncs(case, &mut reached);
    reach::commits(case, &mut reached);
    if case.plan.settings.fence.is_some() {
        fenced::changes(case, &mut reached);
        fenced::writers(case, &mut reached);
    }
    if verdict.overlaps > 0 {
        reached.insert(
            "the wrong controller's write is stored before every API server applies the fence",
        );
    }
    if case.plan.settings.opt_ins.is_some() {
        opted::requests(case, &mut reached);
        opted::commits(case, &mut reached);
    }
    if verdict.removed > 0 {
        reached.insert("a claim is collected with its pod or set");
    }
    if verdict.outrun > 0 {
        reached.insert("a user's change outruns a claim's last look");
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn situations_are_sorted_by_name_and_unique() {
        for all in [SITUATIONS, FENCE_SITUATIONS, OPT_IN_SITUATIONS] {
            let sorted: BTreeSet<&str> = all.iter().copied().collect();
            assert_eq!(sorted.len(), all.len());
        }
    }
}
