//! Results of syncs that depend only on a template and on revisions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use statefulset_client::feature_gates::FeatureGates;

use crate::controller_revision::ControllerRevision;

#[cfg(test)]
mod tests;

/// Results of syncs about a set's template. Shared by the states of a set that have the same
/// template, so that a sync repeats no work of an earlier one; freed with the last of them.
#[derive(Debug, Default)]
pub struct TemplateMemo(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The gates and the sorted history of the last sync whose latest revision held the template.
    /// A weak pointer keeps the address, so no other revision is taken for it.
    latest_equal: Option<(FeatureGates, Box<[Weak<ControllerRevision>]>)>,
    /// Revisions that could be applied, the newest last.
    applicable: Vec<Weak<ControllerRevision>>,
}

/// The current and the update revision.
const APPLICABLE_MAX: usize = 2;

impl TemplateMemo {
    /// Returns true if the latest revision of this sorted history is known to hold the template.
    pub fn equals_latest(&self, gates: FeatureGates, sorted: &[Arc<ControllerRevision>]) -> bool {
        let known = self.lock();
        known.latest_equal.as_ref().is_some_and(|(then, known)| {
            *then == gates
                && known.len() == sorted.len()
                && known.iter().zip(sorted).all(|(known, it)| is(known, it))
        })
    }

    /// Records that the latest revision of this sorted history holds the template.
    pub fn set_equals_latest(&self, gates: FeatureGates, sorted: &[Arc<ControllerRevision>]) {
        let sorted = sorted.iter().map(Arc::downgrade).collect();
        self.lock().latest_equal = Some((gates, sorted));
    }

    /// Returns true if the revision is known to be applicable to the template.
    pub fn is_applicable(&self, revision: &Arc<ControllerRevision>) -> bool {
        let known = self.lock();
        known.applicable.iter().any(|known| is(known, revision))
    }

    /// Records that the revision is applicable to the template.
    pub fn set_applicable(&self, revision: &Arc<ControllerRevision>) {
        let mut known = self.lock();
        if known.applicable.len() == APPLICABLE_MAX {
            known.applicable.remove(0);
        }
        known.applicable.push(Arc::downgrade(revision));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is(known: &Weak<ControllerRevision>, revision: &Arc<ControllerRevision>) -> bool {
    std::ptr::eq(known.as_ptr(), Arc::as_ptr(revision))
}
