//! Shared pods, claims and owners.

use std::sync::Arc;

use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::pod::{POD_NAME_LABEL, Pod, REVISION_LABEL};
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;

use crate::stateful_set_utils::NewPod;
use crate::stateful_set_utils::Ordinal;
use crate::stateful_set_utils::PodSlot;
use crate::stateful_set_utils::persistent_volume_claims;

/// The claim of the first pod.
pub(super) const CLAIM: &str = "datadir-foo-0";

/// API version and kind of a set.
pub(super) const SET: (&str, &str) = ("apps/v1", "StatefulSet");
/// API version and kind of a pod.
pub(super) const POD: (&str, &str) = ("v1", "Pod");

/// Builds a missing pod.
pub(super) fn new_pod(set: &StatefulSet, ordinal: i32) -> NewPod {
    NewPod::new(set, "foo-674c887789", Ordinal::from(ordinal))
}

/// Builds a pod as production does: without uid, phase and revision.
///
/// Upstream: `newStatefulSetPod`.
pub(super) fn pod(set: &StatefulSet, ordinal: i32) -> Builder<Pod> {
    Builder::from_json(serde_json::from_str(&new_pod(set, ordinal).body().unwrap()).unwrap())
        .without_label(REVISION_LABEL)
}

/// Builds the first pod with another pod's name in its name label.
pub(super) fn misnamed_pod(set: &StatefulSet) -> Builder<Pod> {
    pod(set, 0).label(POD_NAME_LABEL, "goo-0")
}

/// Builds the first pod's claim, without owners.
pub(super) fn claim(set: &StatefulSet) -> Builder<Claim> {
    let mut claims = persistent_volume_claims(set, Ordinal::from(0));
    let claim = claims.next().expect("there is a claim template");
    Builder::from_json(claim.to_value().unwrap())
}

/// Builds a slot with an existing pod of this name and uid.
pub(super) fn slot(ordinal: i32, name: &str, uid: &str) -> PodSlot {
    let pod = Pod {
        name: name.into(),
        uid: uid.into(),
        ..Pod::default()
    };
    PodSlot::Existing(Ordinal::from(ordinal), Arc::new(pod))
}

/// Builds an owner reference with this `controller` value.
pub(super) fn reference(
    (api_version, kind): (&str, &str),
    name: &str,
    uid: &str,
    controller: Option<bool>,
) -> OwnerReference {
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: uid.into(),
        controller,
        block_owner_deletion: None,
    }
}

/// Builds a claim with these owners.
pub(super) fn owned(owners: impl IntoIterator<Item = OwnerReference>) -> Claim {
    Claim {
        owner_references: owners.into_iter().collect(),
        ..Claim::default()
    }
}

/// Gives a set this name and uid.
pub(super) fn named_set(set: Builder<StatefulSet>, name: &str, uid: &str) -> Builder<StatefulSet> {
    set.with("metadata.name", name).uid(uid)
}
