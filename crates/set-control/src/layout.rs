//! Where the pods of a set stand: the places that it wants filled, and the pods to be removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{StatefulSet, UpdateStrategyType};
use statefulset_pod_control::identity::ordinal;
use statefulset_pod_control::{NewPod, Ordinal, PodSlot};

#[cfg(test)]
mod tests;

/// How many missing pods one sync of a `Parallel` set creates at most, so that it ends while other
/// sets wait and takes no memory for thousands of millions of pods.
const MISSING_PODS_MAX: usize = 500;

/// A set as of one of its revisions.
#[derive(Clone)]
pub(crate) struct SetRevision {
    /// Name of the revision.
    pub(crate) name: Box<str>,
    /// The set, with the template of that revision.
    pub(crate) set: StatefulSet,
}

/// The pods of a set, laid out.
pub(crate) struct Layout {
    /// One place for each wanted pod, by index; where many pods are missing, without those that
    /// this sync can't come to.
    pub(crate) replicas: Vec<PodSlot>,
    /// Whether every wanted pod has its place.
    pub(crate) is_complete: bool,
    /// Pods that are no longer wanted, from the highest ordinal to the lowest.
    pub(crate) condemned: Vec<PodSlot>,
    /// The name of the first pod that isn't available: replicas from the lowest ordinal, then
    /// condemned ones from the lowest ordinal. A missing pod isn't available.
    pub(crate) first_unavailable: Option<Box<str>>,
}

impl Layout {
    /// Lays out the pods. A pod without an ordinal has no place. A wanted pod without a phase, as
    /// no API server stores one, counts as missing: creating it tells whether it is there.
    pub(crate) fn new(
        set: &StatefulSet,
        current: &SetRevision,
        update: &SetRevision,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> Self {
        let replica_count = usize::try_from(set.spec.replicas).unwrap_or(0);
        let mut places: BTreeMap<usize, PodSlot> = BTreeMap::new();
        let mut condemned = Vec::new();
        for pod in pods {
            let Some(ordinal) = ordinal(&pod.name) else {
                continue;
            };
            let slot = PodSlot::Existing(ordinal, Arc::clone(pod));
            match ordinal.index_in(set) {
                Some(index) if pod.is_created() => drop(places.insert(index, slot)),
                Some(index) => drop(places.remove(&index)),
                None => condemned.push(slot),
            }
        }
        // In order, a sync ends at the first missing pod, whatever comes of it.
        let missing_max = if set.spec.allows_burst() {
            MISSING_PODS_MAX
        } else {
            1
        };
        let is_missing = |index: &usize| !places.contains_key(index);
        let missing: Vec<usize> = (0..replica_count)
            .filter(is_missing)
            .take(missing_max)
            .collect();
        for index in missing {
            let ordinal = Ordinal::of_index(set, index);
            places.insert(index, new_pod(set, current, update, ordinal));
        }
        let replicas: Vec<PodSlot> = places.into_values().collect();
        condemned.sort_by_key(|slot| std::cmp::Reverse(slot.ordinal()));
        let first_unavailable = replicas
            .iter()
            .chain(condemned.iter().rev())
            .find(|slot| slot.is_unavailable(set.spec.min_ready_seconds, now))
            .map(|slot| slot.name().into());
        Self {
            is_complete: replicas.len() == replica_count,
            replicas,
            condemned,
            first_unavailable,
        }
    }

    /// All existing pods, replicas first.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        let slots = self.replicas.iter().chain(&self.condemned);
        slots.filter_map(|slot| slot.existing().map(|pod| &**pod))
    }
}

/// A pod for an empty place, of the current revision where the update hasn't come that far.
///
/// Upstream: `newVersionedStatefulSetPod`.
fn new_pod(
    set: &StatefulSet,
    current: &SetRevision,
    update: &SetRevision,
    ordinal: Ordinal,
) -> PodSlot {
    let strategy = &current.set.spec.update_strategy;
    let is_current = match &strategy.rolling_update {
        None => {
            strategy.strategy_type == UpdateStrategyType::RollingUpdate
                && ordinal.is_below(set, set.status.current_replicas)
        }
        Some(rolling_update) => ordinal.is_below(set, rolling_update.partition),
    };
    let revision = if is_current { current } else { update };
    PodSlot::Missing(NewPod::new(&revision.set, &revision.name, ordinal))
}
