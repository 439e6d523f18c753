//! A set's pods by slot: desired replicas and condemned pods.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_history::apply_revision;
use statefulset_pod_control::stateful_set_utils::ordinal;
use statefulset_pod_control::{NewPod, Ordinal, PodSlot};

use crate::error::Error;
use crate::waiting::Waiting;

#[cfg(test)]
mod tests;

/// Maximum number of missing pods that one sync of a `Parallel` set creates. Bounds the delay for
/// other sets, and the memory.
const MISSING_PODS_MAX: usize = 500;

/// A set at one of its revisions.
pub(crate) struct SetRevision<'a> {
    set: &'a StatefulSet,
    revision: &'a Arc<ControllerRevision>,
    /// The set with the revision's template. Only the creation of a pod needs it, and it is the
    /// most expensive part of a sync.
    applied: OnceLock<StatefulSet>,
}

impl<'a> SetRevision<'a> {
    /// Checks that the revision can be applied to the set.
    ///
    /// # Errors
    ///
    /// The revision can't be applied.
    pub(crate) fn new(
        set: &'a StatefulSet,
        revision: &'a Arc<ControllerRevision>,
    ) -> Result<Self, Error> {
        let applied = OnceLock::new();
        let it = Self {
            set,
            revision,
            applied,
        };
        if !set.spec.template.memo().is_applicable(revision) {
            it.applied()?;
        }
        Ok(it)
    }

    fn applied(&self) -> Result<&StatefulSet, Error> {
        if let Some(applied) = self.applied.get() {
            return Ok(applied);
        }
        let applied = apply_revision(self.set, self.revision)?;
        Ok(self.applied.get_or_init(|| applied))
    }
}

/// A set's pods by slot.
pub(crate) struct Replicas {
    /// One slot per desired pod, by index, without the missing pods that this sync doesn't create.
    pub(crate) desired: Vec<PodSlot>,
    /// True if every desired pod has a slot.
    pub(crate) is_complete: bool,
    /// Condemned pods, by descending ordinal.
    pub(crate) condemned: Vec<PodSlot>,
    /// Name of the first unavailable pod: desired pods by ascending ordinal, then condemned ones by
    /// ascending ordinal. A missing pod is unavailable.
    pub(crate) first_unavailable: Option<Box<str>>,
}

impl Replicas {
    /// Splits the pods. A pod without an ordinal gets no slot. A desired pod without a phase, which
    /// no API server stores, counts as missing.
    ///
    /// # Errors
    ///
    /// A revision can't be applied to the set.
    pub(crate) fn new(
        set: &StatefulSet,
        current: &SetRevision<'_>,
        update: &SetRevision<'_>,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> Result<Self, Error> {
        let (mut desired, mut condemned) = (Vec::with_capacity(pods.len()), Vec::new());
        // Of desired pods with the same ordinal the last one counts.
        for pod in pods.iter().rev() {
            match ordinal(&pod.name) {
                Some(ordinal) if ordinal.index_in(set).is_some() => {
                    desired.push(PodSlot::Existing(ordinal, Arc::clone(pod)));
                }
                Some(ordinal) => condemned.push(PodSlot::Existing(ordinal, Arc::clone(pod))),
                None => {}
            }
        }
        desired.sort_by_key(PodSlot::ordinal);
        desired.dedup_by_key(|slot| slot.ordinal());
        desired.retain(|slot| slot.existing().is_some_and(|pod| pod.is_created()));
        condemned.sort_by_key(PodSlot::ordinal);
        condemned.reverse();

        // A set may want billions of pods, and a monotonic sync stops at the first missing one.
        let missing_max = if set.spec.allows_burst() {
            MISSING_PODS_MAX
        } else {
            1
        };
        let replica_count = usize::try_from(set.spec.replicas).unwrap_or(0);
        let mut existing = desired.iter().map(PodSlot::ordinal).peekable();
        let missing: Vec<PodSlot> = (0..replica_count)
            .map(|index| Ordinal::of_index(set, index))
            .filter(|ordinal| existing.next_if_eq(ordinal).is_none())
            .take(missing_max.min(replica_count.saturating_sub(desired.len())))
            .map(|ordinal| new_versioned_stateful_set_pod(current, update, ordinal))
            .collect::<Result<_, _>>()?;
        desired.extend(missing);
        desired.sort_by_key(PodSlot::ordinal);
        let first_unavailable = desired
            .iter()
            .chain(condemned.iter().rev())
            .find(|slot| slot.is_unavailable(set.spec.min_ready_seconds, now))
            .map(|slot| slot.name().into());
        Ok(Self {
            is_complete: desired.len() == replica_count,
            desired,
            condemned,
            first_unavailable,
        })
    }

    /// Returns the reason to wait after this sync created its last missing pod.
    pub(crate) fn waiting_for_last_created(&self) -> Option<Waiting> {
        let created = self.desired.iter().rfind(|slot| slot.existing().is_none());
        created.map(|slot| Waiting::PodCreated(slot.name().into()))
    }

    /// Returns the pods that existed at the start of the sync, desired ones first.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        let slots = self.desired.iter().chain(&self.condemned);
        slots.filter_map(|slot| slot.existing().map(|pod| &**pod))
    }
}

/// Returns the pod for an empty slot: of the current revision if the update hasn't reached its
/// ordinal, otherwise of the update revision.
///
/// Upstream: `newVersionedStatefulSetPod`.
fn new_versioned_stateful_set_pod(
    current: &SetRevision<'_>,
    update: &SetRevision<'_>,
    ordinal: Ordinal,
) -> Result<PodSlot, Error> {
    let is_current = ordinal.keeps_current_revision(current.applied()?);
    let set_revision = if is_current { current } else { update };
    let name = &set_revision.revision.name;
    let mut pod = NewPod::new(set_revision.applied()?, name, ordinal);
    pod.is_outdated = *name != update.revision.name;
    Ok(PodSlot::Missing(pod))
}
