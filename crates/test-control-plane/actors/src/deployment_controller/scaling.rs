//! Scaling of a deployment, including while paused or during a rollout.

use super::revisions::scaled;
use super::view::{DESIRED, MAX, ReplicaSet, View};
use super::write::Write;

/// Returns the changes of the replica sets' sizes: of the only one that has pods, or of each in
/// proportion.
///
/// Upstream: `scale` of the deployment controller.
pub(super) fn scale(view: &View) -> Vec<Write> {
    let active: Vec<&ReplicaSet> = view.all().filter(|set| set.replicas > 0).collect();
    let latest = || view.new.as_ref().or(view.old.last());
    let only = match active.as_slice() {
        [] => latest(),
        [set] => Some(*set),
        _ => None,
    };
    if let Some(set) = only {
        return scaled(view, set, view.replicas).into_iter().collect();
    }
    if let Some(new) = &view.new
        && is_saturated(view, new)
    {
        let old = view.old.iter().filter(|set| set.replicas > 0);
        return old.filter_map(|set| scaled(view, set, 0)).collect();
    }
    if view.strategy != "RollingUpdate" {
        return Vec::new();
    }
    let sizes = proportional(view, &active);
    let all = active.iter().zip(sizes);
    all.filter_map(|(set, size)| scaled(view, set, size))
        .collect()
}

/// Upstream: `IsSaturated`
fn is_saturated(view: &View, set: &ReplicaSet) -> bool {
    let wanted = view.replicas;
    set.replicas == wanted && set.number(DESIRED) == Some(wanted) && set.available == wanted
}

/// Returns the sizes of the active replica sets, which share the new size as they shared the old
/// one. The rest goes to the largest.
fn proportional(view: &View, active: &[&ReplicaSet]) -> Vec<i64> {
    let most = match view.replicas {
        0 => 0,
        replicas => replicas + view.max_surge,
    };
    let mut sizes: Vec<i64> = active.iter().map(|set| set.replicas).collect();
    let wanted = most - sizes.iter().sum::<i64>();
    // The largest comes first; of two equal ones, the newer one if pods are added.
    let mut order: Vec<usize> = (0..active.len()).collect();
    if wanted > 0 {
        order.reverse();
    }
    order.sort_by_key(|i| std::cmp::Reverse(sizes.get(*i).copied()));
    let mut added = 0;
    for (set, size) in order.iter().filter_map(|i| Some((active.get(*i)?, *i))) {
        let part = share(view, set, wanted - added, wanted);
        if let Some(size) = sizes.get_mut(size) {
            *size += part;
        }
        added += part;
    }
    if let Some(largest) = order.first().and_then(|i| sizes.get_mut(*i)) {
        *largest = (*largest + wanted - added).max(0);
    }
    sizes
}

/// Upstream: `GetReplicaSetProportion`
fn share(view: &View, set: &ReplicaSet, rest: i64, wanted: i64) -> i64 {
    if set.replicas == 0 || wanted == 0 || rest == 0 {
        return 0;
    }
    if view.replicas == 0 {
        return -set.replicas;
    }
    let max = view.replicas + view.max_surge;
    let before = set.number(MAX).filter(|max| *max > 0).unwrap_or(max);
    // Rounded half away from zero.
    let size = (set.replicas.saturating_mul(max).saturating_mul(2) + before) / (before * 2);
    let part = size - set.replicas;
    if wanted > 0 {
        part.min(rest)
    } else {
        part.max(rest)
    }
}
