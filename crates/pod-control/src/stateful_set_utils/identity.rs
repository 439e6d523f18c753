//! Names and ordinals of a set's pods and claims.

use std::fmt;

use kube_apimachinery::json::object_member;
use serde_json::Value;
use statefulset_controller_util::controller_ref_manager::Membership;
use statefulset_controller_util::pod::{POD_INDEX_LABEL, POD_NAME_LABEL, Pod, PodName};
use statefulset_controller_util::stateful_set::{StatefulSet, UpdateStrategyType};

#[cfg(test)]
mod tests;

/// A pod's ordinal: the number at the end of its name. The first ordinal of a set is
/// `spec.ordinals.start`, so an ordinal is not an index.
///
/// Parsed ordinals fit 31 bits; a set can ask for larger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(i64);

impl Ordinal {
    /// Returns the ordinal of the pod at this index of the set.
    pub fn of_index(set: &StatefulSet, index: usize) -> Self {
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        Self(i64::from(set.spec.start_ordinal).saturating_add(index))
    }

    /// Returns the ordinal's index in the set, if the set wants such a pod.
    ///
    /// Upstream: `podInOrdinalRange`, which returns no index.
    pub fn index_in(self, set: &StatefulSet) -> Option<usize> {
        let index = self.0 - i64::from(set.spec.start_ordinal);
        if index >= i64::from(set.spec.replicas) {
            return None;
        }
        usize::try_from(index).ok()
    }

    /// True if the ordinal is too large for a pod's name: such a pod would never count as the
    /// set's.
    pub fn is_past_largest(self) -> bool {
        self.0 > i64::from(i32::MAX)
    }

    /// True if a pod that is created at this ordinal gets the current revision, because the update
    /// hasn't reached it; otherwise it gets the update revision.
    ///
    /// Upstream: `newVersionedStatefulSetPod`, as the rule alone.
    pub fn keeps_current_revision(self, set: &StatefulSet) -> bool {
        let strategy = &set.spec.update_strategy;
        match &strategy.rolling_update {
            None => {
                strategy.strategy_type == UpdateStrategyType::RollingUpdate
                    && self.is_below(set, set.status.current_replicas)
            }
            Some(rolling_update) => self.is_below(set, rolling_update.partition),
        }
    }

    /// True if the ordinal is less than the set's first ordinal plus `count`.
    pub fn is_below(self, set: &StatefulSet, count: i32) -> bool {
        self.0 < i64::from(set.spec.start_ordinal) + i64::from(count)
    }
}

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<i32> for Ordinal {
    fn from(ordinal: i32) -> Self {
        Self(i64::from(ordinal))
    }
}

/// Returns the ordinal in a pod's name, if any.
///
/// Upstream: `getOrdinal`.
pub fn ordinal(pod_name: &PodName) -> Option<Ordinal> {
    let (_, ordinal) = pod_name.parent_name_and_ordinal()?;
    ordinal.map(Ordinal::from)
}

/// Returns the name of the set's pod with this ordinal.
///
/// Upstream: `getPodName`.
pub fn pod_name(set: &StatefulSet, ordinal: Ordinal) -> String {
    [set.name(), "-", &ordinal.0.to_string()].concat()
}

/// Returns the name of the claim from a template for the set's pod with this ordinal.
///
/// Upstream: `getPersistentVolumeClaimName`.
pub fn persistent_volume_claim_name(set: &StatefulSet, template: &str, ordinal: Ordinal) -> String {
    [template, "-", set.name(), "-", &ordinal.0.to_string()].concat()
}

/// Relation of a pod's name to the set. A member's name is the set's name, a dash, and the ordinal
/// in canonical decimal. Names such as `web-007`, or with an ordinal past 31 bits, are malformed.
///
/// Upstream: `isMemberOf`, which takes malformed names for members.
pub fn membership(set: &StatefulSet, pod: &Pod) -> Membership {
    match pod.name.parent_name_and_ordinal() {
        Some((parent, _)) if parent != set.name() => Membership::Stranger,
        Some(_) if pod.name.is_canonical() => Membership::Member,
        Some(_) => Membership::Malformed,
        None => Membership::Stranger,
    }
}

/// True if a pod is named as a member of the set, and has the set's namespace and the right name
/// label. Ignores its index label, revision, host name and owner.
///
/// Upstream: `identityMatches`.
pub fn identity_matches(set: &StatefulSet, pod: &Pod) -> bool {
    membership(set, pod) == Membership::Member
        && *pod.namespace == *set.namespace()
        && pod.labels.get(POD_NAME_LABEL) == Some(&pod.name)
}

/// Sets the namespace and the identity labels in a pod's JSON.
///
/// Upstream: `updateIdentity`.
pub(crate) fn update_identity(pod: &mut Value, set: &StatefulSet, name: &str, ordinal: Ordinal) {
    let metadata = object_member(pod, "metadata");
    metadata["namespace"] = Value::from(set.namespace());
    let labels = object_member(metadata, "labels");
    labels[POD_NAME_LABEL] = Value::from(name);
    labels[POD_INDEX_LABEL] = Value::from(ordinal.to_string());
}
