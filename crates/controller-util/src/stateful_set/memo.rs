//! Results of syncs that depend only on a template and on revisions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_apimachinery::json::ParseError;
use statefulset_client::feature_gates::FeatureGates;

use super::{PodTemplate, StatefulSet, TemplateMembers, UpdateStrategy};
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
    latest_equal: Option<(FeatureGates, Box<[RevisionState]>)>,
    /// Revisions that could be applied, the newest last, each with its kept parts, if any.
    applicable: Vec<(RevisionState, Option<AppliedRevision>)>,
    /// The template's members.
    members: Option<Arc<TemplateMembers>>,
}

/// Identifies one state of a revision: the response to its creation and the copy in the cache show
/// the same state. Only an API server's states have a version, so no other is known.
#[derive(Debug)]
struct RevisionState {
    uid: Box<str>,
    resource_version: Box<str>,
}

impl RevisionState {
    fn of(revision: &ControllerRevision) -> Self {
        Self {
            uid: revision.uid.clone(),
            resource_version: revision.resource_version.clone(),
        }
    }

    fn is_of(&self, revision: &ControllerRevision) -> bool {
        let has_version = !self.resource_version.is_empty();
        has_version
            && self.resource_version == revision.resource_version
            && self.uid == revision.uid
    }
}

/// The parts of a set that a revision replaces.
#[derive(Clone, Debug)]
pub struct AppliedRevision {
    /// The recorded template; `None` keeps the set's.
    pub template: Option<PodTemplate>,
    /// True if the revision replaces or deletes the update strategy, alone or with the whole spec.
    pub replaces_strategy: bool,
}

impl AppliedRevision {
    /// Returns the set with the revision's parts.
    pub fn on(&self, set: &StatefulSet) -> StatefulSet {
        let Some(template) = &self.template else {
            return set.clone();
        };
        let mut applied = set.with_template(template.clone());
        if self.replaces_strategy {
            // The revision keeps no update strategy, so no sync creates its pods.
            applied.spec.update_strategy = UpdateStrategy::default();
        }
        applied
    }

    fn bytes(&self) -> usize {
        self.template.as_ref().map_or(0, PodTemplate::json_len)
    }
}

/// The current and the update revision.
const APPLICABLE_MAX: usize = 2;
/// Maximum size of a kept template. A larger one is decoded again for each sync that needs it.
const KEPT_BYTES_MAX: usize = 16 * 1024;

impl TemplateMemo {
    /// Returns true if the latest revision of this sorted history is known to hold the template.
    pub fn equals_latest(&self, gates: FeatureGates, sorted: &[Arc<ControllerRevision>]) -> bool {
        let known = self.lock();
        known.latest_equal.as_ref().is_some_and(|(then, known)| {
            *then == gates
                && known.len() == sorted.len()
                && known.iter().zip(sorted).all(|(known, it)| known.is_of(it))
        })
    }

    /// Records that the latest revision of this sorted history holds the template.
    pub fn set_equals_latest<'a>(
        &self,
        gates: FeatureGates,
        sorted: impl IntoIterator<Item = &'a Arc<ControllerRevision>>,
    ) {
        let sorted = sorted.into_iter().map(|it| RevisionState::of(it));
        self.lock().latest_equal = Some((gates, sorted.collect()));
    }

    /// Returns true if the revision is known to be applicable to the template.
    pub fn is_applicable(&self, revision: &ControllerRevision) -> bool {
        let known = self.lock();
        known
            .applicable
            .iter()
            .any(|(known, _)| known.is_of(revision))
    }

    /// Returns the parts that the revision replaces: the kept ones, or those from `apply`, which are
    /// kept then.
    ///
    /// # Errors
    ///
    /// The error of `apply`.
    pub fn applied<E>(
        &self,
        revision: &ControllerRevision,
        apply: impl FnOnce() -> Result<AppliedRevision, E>,
    ) -> Result<AppliedRevision, E> {
        let kept = |known: &Known| {
            let mut known = known.applicable.iter();
            known.find_map(|(known, applied)| applied.clone().filter(|_| known.is_of(revision)))
        };
        if let Some(applied) = kept(&self.lock()) {
            return Ok(applied);
        }
        let applied = apply()?;
        let kept = (applied.bytes() <= KEPT_BYTES_MAX).then(|| applied.clone());
        let mut known = self.lock();
        known.applicable.retain(|(known, _)| !known.is_of(revision));
        if known.applicable.len() == APPLICABLE_MAX {
            known.applicable.remove(0);
        }
        known.applicable.push((RevisionState::of(revision), kept));
        Ok(applied)
    }

    /// Returns the template's members: the kept ones, or those from `parse`, which are kept then.
    pub(super) fn members(
        &self,
        parse: impl FnOnce() -> Result<TemplateMembers, ParseError>,
    ) -> Result<Arc<TemplateMembers>, ParseError> {
        let mut known = self.lock();
        if let Some(members) = &known.members {
            return Ok(Arc::clone(members));
        }
        let members = Arc::new(parse()?);
        known.members = Some(Arc::clone(&members));
        Ok(members)
    }

    /// Frees the kept results: a complete set needs none.
    pub fn forget_applied(&self) {
        let mut known = self.lock();
        known.members = None;
        for (_, applied) in &mut known.applicable {
            *applied = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
