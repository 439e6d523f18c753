//! A slot of a set: an existing or a missing pod.

use std::sync::Arc;

use jiff::Timestamp;
use statefulset_controller_util::pod::Pod;

use super::identity::Ordinal;
use super::new_pod::NewPod;

/// One slot of a set.
#[derive(Clone, Debug)]
pub enum PodSlot {
    /// A cached pod, with the ordinal in its name.
    Existing(Ordinal, Arc<Pod>),
    /// A missing pod, ready to be created.
    Missing(NewPod),
}

impl PodSlot {
    /// The ordinal.
    pub fn ordinal(&self) -> Ordinal {
        match self {
            Self::Existing(ordinal, _) => *ordinal,
            Self::Missing(pod) => pod.ordinal,
        }
    }

    /// The name of the pod.
    pub fn name(&self) -> &str {
        match self {
            Self::Existing(_, pod) => &pod.name,
            Self::Missing(pod) => &pod.name,
        }
    }

    /// The pod's uid; empty for a missing pod, unless this sync created it outdated.
    pub fn uid(&self) -> &str {
        self.pod().map_or("", |pod| &pod.uid)
    }

    /// The cached pod, or the outdated one that this sync created.
    pub fn pod(&self) -> Option<&Arc<Pod>> {
        match self {
            Self::Existing(_, pod) => Some(pod),
            Self::Missing(pod) => pod.created.get(),
        }
    }

    /// The cached pod, if any.
    pub fn existing(&self) -> Option<&Arc<Pod>> {
        match self {
            Self::Existing(_, pod) => Some(pod),
            Self::Missing(_) => None,
        }
    }

    /// True if the slot has no available pod, or a terminating one.
    pub fn is_unavailable(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        self.existing()
            .is_none_or(|pod| pod.is_unavailable(min_ready_seconds, now))
    }

    /// Name of the pod's revision.
    pub fn revision(&self) -> &str {
        match self {
            Self::Existing(_, pod) => pod.revision(),
            Self::Missing(pod) => &pod.revision,
        }
    }
}

#[cfg(test)]
mod tests {
    use statefulset_controller_util::testing::builders;

    use super::*;
    use crate::tests::world::existing;

    #[test]
    fn slot_reports_existing_and_missing_pods() {
        let set = builders::set("web").build();
        let new_pod = NewPod::new(&set, "web-1", Ordinal::from(4));
        let pod = builders::pod(&set, 4).revision("web-0");
        for (slot, uid, revision, unavailable) in [
            (PodSlot::Missing(new_pod), "", "web-1", true),
            (existing(&pod), "web-4-uid", "web-0", false),
            (existing(&pod.clone().unready()), "web-4-uid", "web-0", true),
        ] {
            assert_eq!((slot.ordinal(), slot.name()), (Ordinal::from(4), "web-4"));
            assert_eq!(slot.uid(), uid);
            assert_eq!(slot.revision(), revision);
            assert_eq!(slot.existing().is_none(), uid.is_empty());
            assert_eq!(slot.is_unavailable(0, Timestamp::MAX), unavailable);
        }
    }
}
