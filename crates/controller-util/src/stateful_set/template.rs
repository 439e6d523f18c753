//! Pod templates, kept verbatim so that fields unknown to the compiled types survive, and the
//! results of syncs that depend only on a template and on revisions.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_apimachinery::json::{ParseError, parse, to_go_string};
use serde_json::Value;
use serde_json::value::RawValue;
use statefulset_client::cache::indexer::SharedText;
use statefulset_client::feature_gates::FeatureGates;

use super::members::TemplateMembers;
use super::part::Part;
use crate::controller_revision::ControllerRevision;

#[cfg(test)]
mod tests;

/// A pod template: the verbatim JSON of `.spec.template`.
#[derive(Clone, Debug)]
pub struct PodTemplate {
    json: Part,
    /// True if the text is Go's encoding of a value.
    is_encoded: bool,
    memo: Arc<TemplateMemo>,
}

impl From<Part> for PodTemplate {
    fn from(json: Part) -> Self {
        Self {
            json,
            is_encoded: false,
            memo: Arc::default(),
        }
    }
}

impl PodTemplate {
    /// Creates a template from its JSON.
    pub fn from_value(template: &Value) -> Self {
        Self {
            is_encoded: true,
            ..Part::whole(to_go_string(template)).into()
        }
    }

    /// Slices the template from the text of a spec.
    pub(super) fn of(spec: &SharedText, template: Option<&RawValue>) -> Self {
        template.map_or_else(Self::default, |template| Part::of(spec, template).into())
    }

    /// The JSON text, as sent by the server.
    pub fn to_json(&self) -> Cow<'_, str> {
        self.json.to_str()
    }

    /// The template as Go encodes it, with sorted fields.
    ///
    /// # Errors
    ///
    /// Same as [`PodTemplate::to_value`].
    pub fn encoded(&self) -> Result<Cow<'_, str>, ParseError> {
        if self.is_encoded {
            return Ok(self.to_json());
        }
        Ok(to_go_string(&self.to_value()?).into())
    }

    /// Returns the fields that pods need, parsed once while syncs need them.
    ///
    /// # Errors
    ///
    /// Same as [`PodTemplate::to_value`].
    pub fn members(&self) -> Result<Arc<TemplateMembers>, ParseError> {
        self.memo
            .members(|| TemplateMembers::parse(&self.encoded()?))
    }

    /// Length of the JSON text in bytes.
    pub fn json_len(&self) -> usize {
        self.json.len()
    }

    pub(super) fn moved(&self, spec: &SharedText, form: &SharedText) -> Self {
        Self {
            json: self.json.moved(spec, form),
            is_encoded: self.is_encoded,
            memo: Arc::clone(&self.memo),
        }
    }

    /// Results of syncs about this template.
    pub fn memo(&self) -> &TemplateMemo {
        &self.memo
    }

    /// Takes over the memo of the set's previous template, if the text is the same.
    pub(super) fn inherit_memo(&mut self, previous: &Self) {
        if self.json_len() == previous.json_len() && self.to_json() == previous.to_json() {
            self.memo = Arc::clone(&previous.memo);
        }
    }

    /// The template as a JSON value.
    ///
    /// # Errors
    ///
    /// The template nests too deep, or contains a number beyond the range of doubles.
    pub fn to_value(&self) -> Result<Value, ParseError> {
        parse(&self.to_json())
    }
}

impl Default for PodTemplate {
    /// The empty template.
    fn default() -> Self {
        Part::whole("{}").into()
    }
}

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
    /// The template's fields.
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

    /// Returns the template's fields: the kept ones, or those from `parse`, which are kept then.
    fn members(
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
