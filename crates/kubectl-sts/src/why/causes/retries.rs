//! Writes that are due, and that no controller has sent yet.

use crate::decide::{Decision, Write};
use crate::model::ManagedSet;
use crate::why::case::Case;
use crate::why::finding::{Doubt, Finding};

/// Seconds after which a write that isn't sent needs an explanation.
const PATIENCE_SECONDS: i64 = 60;
/// Seconds in which a controller sees a change: those in which another instance takes the lease, and
/// some for its start.
const UNSEEN_SECONDS: i64 = 30;
/// Longest delay of the controller's retries, 1000 seconds.
const BACK_OFF_MAX: &str = "16m40s";
/// The annotation that asks for a sync.
const REQUEST: &str = "kubectl-sts/sync-requested-at";

/// The cause if a due write doesn't happen.
pub(in crate::why) fn overdue(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    let writes = &decision.writes;
    // Another version of the controller may leave out repairs, but never pods.
    let is_needed = |write: &&Write| {
        write.resource == "pods" && (write.verb == "create" || write.verb == "delete")
    };
    let needed = writes.iter().find(is_needed);
    let is_unseen = is_unseen(case);
    let is_due = needed.is_some() || !writes.is_empty() && is_unseen;
    if !is_due || !is_overdue(case) {
        return None;
    }
    if is_unseen && is_fresh(case) {
        return None;
    }
    let finding = match needed.or(writes.first()) {
        Some(write) if !is_unseen => back_off(case, write),
        _ => no_controller(case),
    };
    Some(finding.doubted_by(Doubt::Controller))
}

/// Reports whether no controller has seen the last change of the set.
pub(in crate::why) fn is_unseen(case: Case<'_>) -> bool {
    case.set.metadata.generation > case.set.status.observed_generation
}

/// Reports whether a controller has had no time to see the last change of the set: the time for a
/// full queue, or for another instance to take the lease.
pub(in crate::why) fn is_fresh(case: Case<'_>) -> bool {
    let set = case.snapshot.set.as_ref();
    let managed = set.and_then(|set| serde_json::from_str::<ManagedSet>(&set.text).ok());
    let edited = managed.and_then(|managed| managed.edited_at());
    let edited = edited.or(case.set.metadata.creation_timestamp);
    edited.is_some_and(|at| case.seconds_since(at) < UNSEEN_SECONDS)
}

/// The cause of a change that is about to be seen.
pub(in crate::why) fn unseen() -> Finding {
    Finding::waiting(
        "in-progress",
        "no controller has seen the last change of the set yet",
    )
}

/// Reports whether a working controller would have sent the next write.
fn is_overdue(case: Case<'_>) -> bool {
    let set = case.set;
    let pods = case.snapshot.pods_of(set).flat_map(|pod| {
        let conditions = pod.status.conditions.iter();
        let changes = conditions.filter_map(|condition| condition.last_transition_time);
        changes.chain(pod.metadata.creation_timestamp)
    });
    let revisions = case.snapshot.revisions_of(set).into_iter();
    let revisions = revisions.filter_map(|revision| revision.metadata.creation_timestamp);
    let latest = pods
        .chain(revisions)
        .chain(set.metadata.creation_timestamp)
        .max();
    latest.is_some_and(|latest| case.seconds_since(latest) >= PATIENCE_SECONDS)
}

/// The cause if the controller waits until it retries a write that failed before.
pub(in crate::why) fn back_off(case: Case<'_>, write: &Write) -> Finding {
    let kind = match write.resource {
        "pods" => "pod",
        "persistentvolumeclaims" => "claim",
        other => other,
    };
    let done = match write.verb {
        "create" => "created",
        "delete" => "deleted",
        _ => "changed",
    };
    let object = &write.name;
    let (now, set) = (case.snapshot.now, &case.set.metadata);
    let text = format!(
        "{kind} {object} can be {done} now: after its failures the controller waits in its retry \
         back-off, for {BACK_OFF_MAX} at most; any change of the set starts a sync at once"
    );
    let name = &set.name;
    let second = now.strftime("%Y-%m-%dT%H:%M:%SZ");
    let stamp = format!("{REQUEST}={second} --overwrite");
    Finding::waiting("retry-back-off", text)
        .resolved_by(case.kubectl(&format!("annotate statefulset {name} {stamp}")))
        .but(
            "if this changes nothing, check that exactly one StatefulSet controller runs and \
             holds its lease in kube-system",
        )
}

/// The cause if nothing acts on the set.
pub(in crate::why) fn no_controller(case: Case<'_>) -> Finding {
    let set = case.set;
    Finding::stuck("no-controller", "no controller manages the set")
        .shown_by([format!(
            "generation {}, status of generation {}",
            set.metadata.generation, set.status.observed_generation
        )])
        .but(
            "check that exactly one StatefulSet controller runs and holds its lease in kube-system",
        )
}
