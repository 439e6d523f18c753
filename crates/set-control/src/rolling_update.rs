//! Which pods are deleted to be made anew from the update revision.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::int_or_string::IntOrStringError;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{StatefulSet, UpdateStrategyType};
use statefulset_pod_control::PodSlot;

use crate::outcome::Waiting;

#[cfg(test)]
mod tests;

/// What an update calls for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Pods to delete, in this order.
    pub(crate) delete: Vec<Arc<Pod>>,
    /// What the update waits for.
    pub(crate) waiting: Option<Waiting>,
    /// How many pods are unavailable, where that was counted.
    pub(crate) unavailable: Option<usize>,
}

impl Plan {
    fn wait(waiting: Option<Waiting>) -> Self {
        Self {
            delete: Vec::new(),
            waiting,
            unavailable: None,
        }
    }
}

/// Which pods of an old revision go now.
///
/// # Errors
///
/// `maxUnavailable` is neither a number nor a percentage.
///
/// Upstream: the end of `updateStatefulSet`, `updateStatefulSetAfterInvariantEstablished`.
pub(crate) fn plan(
    set: &StatefulSet,
    replicas: &[PodSlot],
    update_revision: &str,
    max_unavailable_gate: bool,
    now: Timestamp,
) -> Result<Plan, IntOrStringError> {
    let update = Update {
        set,
        replicas,
        revision: update_revision,
        now,
    };
    if set.spec.update_strategy.strategy_type == UpdateStrategyType::OnDelete {
        return Ok(Plan::wait(update.first_outdated()));
    }
    if max_unavailable_gate {
        update.within_budget()
    } else {
        Ok(update.one_at_a_time())
    }
}

/// How many pods may be unavailable during an update: at least 1. Percentages are of the wanted
/// pods, rounded down.
///
/// # Errors
///
/// `maxUnavailable` is neither a number nor a percentage.
///
/// Upstream: `getStatefulSetMaxUnavailable`.
pub(crate) fn max_unavailable(set: &StatefulSet) -> Result<usize, IntOrStringError> {
    let rolling_update = set.spec.update_strategy.rolling_update.as_ref();
    let Some(wanted) = rolling_update.and_then(|r| r.max_unavailable.as_ref()) else {
        return Ok(1);
    };
    let count = wanted.scaled_value(set.spec.replicas, false)?;
    Ok(usize::try_from(count).unwrap_or(0).max(1))
}

/// An update of these places to a revision.
pub(crate) struct Update<'a> {
    pub(crate) set: &'a StatefulSet,
    pub(crate) replicas: &'a [PodSlot],
    pub(crate) revision: &'a str,
    pub(crate) now: Timestamp,
}

impl Update<'_> {
    fn is_unavailable(&self, slot: &PodSlot) -> bool {
        slot.is_unavailable(self.set.spec.min_ready_seconds, self.now)
    }

    /// The pod of this place if it has an old revision and isn't on its way out. In burst mode and
    /// without a `rollingUpdate`, it may be one that this very sync has created.
    fn outdated(&self, slot: &PodSlot) -> Option<Arc<Pod>> {
        if slot.revision() == self.revision {
            return None;
        }
        match slot {
            PodSlot::Existing(_, pod) => (!pod.is_terminating()).then(|| Arc::clone(pod)),
            PodSlot::Missing(pod) => Some(Arc::new(Pod {
                name: pod.name.clone(),
                namespace: pod.namespace().into(),
                ..Pod::default()
            })),
        }
    }

    /// The places from the highest index down to the partition.
    fn candidates(&self) -> impl Iterator<Item = &PodSlot> {
        let rolling_update = self.set.spec.update_strategy.rolling_update.as_ref();
        let partition = rolling_update.map_or(0, |rolling_update| rolling_update.partition);
        let partition = usize::try_from(partition).unwrap_or(0);
        self.replicas.iter().skip(partition).rev()
    }

    fn first_outdated(&self) -> Option<Waiting> {
        let pod = self.replicas.iter().find_map(|slot| self.outdated(slot))?;
        Some(Waiting::PodDeletionByUser {
            pod: pod.name.clone(),
        })
    }

    fn one_at_a_time(&self) -> Plan {
        for slot in self.candidates() {
            if let Some(pod) = self.outdated(slot) {
                let waiting = Some(Waiting::PodUpdated {
                    pod: pod.name.clone(),
                });
                return Plan {
                    delete: vec![pod],
                    waiting,
                    unavailable: None,
                };
            }
            if self.is_unavailable(slot) {
                let pod = slot.name().into();
                return Plan::wait(Some(Waiting::UpdatedPodUnavailable { pod }));
            }
        }
        Plan::wait(None)
    }

    /// As many pods as may be unavailable beside those that are, from the highest index down.
    ///
    /// # Errors
    ///
    /// `maxUnavailable` is neither a number nor a percentage.
    ///
    /// Upstream: `updateStatefulSetAfterInvariantEstablished`.
    pub(crate) fn within_budget(&self) -> Result<Plan, IntOrStringError> {
        let max_unavailable = max_unavailable(self.set)?;
        let unavailable = self
            .replicas
            .iter()
            .filter(|slot| self.is_unavailable(slot))
            .count();
        if unavailable >= max_unavailable {
            let first = self.replicas.iter().find(|slot| self.is_unavailable(slot));
            let waiting = Waiting::UnavailableBudget {
                pod: first.map_or("", |slot| slot.name()).into(),
                unavailable,
                max_unavailable,
            };
            return Ok(Plan {
                delete: Vec::new(),
                waiting: Some(waiting),
                unavailable: Some(unavailable),
            });
        }
        let delete: Vec<Arc<Pod>> = self
            .candidates()
            .filter_map(|slot| self.outdated(slot))
            .take(max_unavailable - unavailable)
            .collect();
        let waiting = delete.first().map(|pod| Waiting::PodUpdated {
            pod: pod.name.clone(),
        });
        Ok(Plan {
            delete,
            waiting,
            unavailable: Some(unavailable),
        })
    }
}
