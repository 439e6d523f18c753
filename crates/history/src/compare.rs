//! Comparison of recorded revisions with a set's template.

use std::sync::Arc;

use kube_apimachinery::defaults::set_pod_template_defaults;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::apply_revision::recorded_template;
use crate::data::{RevisionData, get_patch};
use crate::error::Error;

#[cfg(test)]
mod tests;

/// Returns the revisions that hold `data`, in their given order; unknown fields on only one side
/// don't count. Compares lazily.
///
/// Upstream: `FindEqualRevisions`.
pub fn find_equal_revisions<'a, 'd>(
    revisions: &'a [Arc<ControllerRevision>],
    data: &'d RevisionData,
) -> impl DoubleEndedIterator<Item = &'a Arc<ControllerRevision>> + use<'a, 'd> {
    revisions
        .iter()
        .filter(|revision| !revision.is_data_replaced && data.equals(&revision.data.to_str()))
}

/// True if a recorded revision is semantically equal to `data` although its bytes differ: after
/// applying, defaulting and encoding it again, it equals the data that upstream would record
/// for the set now, and each unknown field in both has the same value.
///
/// An unreadable revision doesn't match.
///
/// Upstream: `statefulSetMatchesRevision` (gate `StatefulSetSemanticRevisionComparison`).
pub fn stateful_set_matches_revision(
    set: &StatefulSet,
    data: &RevisionData,
    revision: &ControllerRevision,
) -> bool {
    // The template that the revision sets, and the data that upstream would record for it.
    let reapply = || -> Result<_, Error> {
        let (recorded, _) = recorded_template(set, revision)?;
        let recorded = recorded.unwrap_or_else(|| data.template.clone());
        let mut template = data.known_members(&recorded)?;
        set_pod_template_defaults(&mut template);
        Ok((recorded, get_patch(data.known_members(&template)?)))
    };
    reapply().is_ok_and(|(recorded, reapplied)| {
        data.known().is_some_and(|known| *known == reapplied)
            && data.agrees_on_unknown_members(&recorded)
    })
}
