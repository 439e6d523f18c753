//! Rollouts: from the old replica sets to the new one.

use super::revisions::{new_replicas, scaled};
use super::view::View;
use super::write::Write;

/// Returns the next changes of a rolling update.
///
/// Upstream: `rolloutRolling`
pub(super) fn rollout_rolling(view: &View) -> Vec<Write> {
    let up = grow(view);
    if !up.is_empty() {
        return up;
    }
    let sizes = reconcile_old_replica_sets(view);
    let changed = view
        .old
        .iter()
        .zip(sizes)
        .filter(|(set, size)| set.replicas != *size);
    changed
        .filter_map(|(set, size)| scaled(view, set, size))
        .collect()
}

/// Returns the next changes of a rollout that stops all old pods first.
///
/// Upstream: `rolloutRecreate`
pub(super) fn rollout_recreate(view: &View, old_pods_run: impl FnOnce() -> bool) -> Vec<Write> {
    let old = view.old.iter().filter(|set| set.replicas > 0);
    let down: Vec<Write> = old.filter_map(|set| scaled(view, set, 0)).collect();
    if !down.is_empty() || old_pods_run() {
        return down;
    }
    grow(view)
}

fn grow(view: &View) -> Vec<Write> {
    let Some(new) = &view.new else {
        return Vec::new();
    };
    let wanted = if new.replicas > view.replicas {
        view.replicas
    } else {
        new_replicas(view, new.replicas)
    };
    let write = (wanted != new.replicas).then(|| scaled(view, new, wanted));
    write.flatten().into_iter().collect()
}

/// Returns the sizes of the old replica sets: first without their unavailable pods, then down to
/// the pods that must be available.
///
/// Upstream: `reconcileOldReplicaSets`
fn reconcile_old_replica_sets(view: &View) -> Vec<i64> {
    let mut sizes: Vec<i64> = view.old.iter().map(|set| set.replicas).collect();
    let least = view.replicas - view.max_unavailable;
    let new_missing = view
        .new
        .as_ref()
        .map_or(0, |set| set.replicas - set.available);
    let mut budget = view.all_replicas() - least - new_missing;
    if budget <= 0 {
        return sizes;
    }
    for (size, set) in sizes.iter_mut().zip(&view.old) {
        let unhealthy = (*size - set.available).clamp(0, budget);
        *size -= unhealthy;
        budget -= unhealthy;
    }
    let mut spare = view.sum("availableReplicas") - least;
    for size in &mut sizes {
        let surplus = (*size).min(spare.max(0));
        *size -= surplus;
        spare -= surplus;
    }
    sizes
}
