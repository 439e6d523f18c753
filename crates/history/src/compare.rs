//! Whether a recorded revision stands for a set's template.

use std::sync::Arc;

use kube_apimachinery::defaults::set_pod_template_defaults;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::apply_revision::recorded_template;
use crate::data::{RevisionData, get_patch, known_members};

#[cfg(test)]
mod tests;

/// The revisions that hold `data`, in the order given; unknown members that only one side holds
/// don't count. Each is compared when it is asked for.
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

/// Whether a recorded revision means what `data` means although its bytes differ: applied,
/// defaulted and recorded anew it gives what the reference would record of the set now, and no
/// unknown member that both hold differs.
///
/// A revision that can't be read doesn't match.
///
/// Upstream: `statefulSetMatchesRevision` (gate `StatefulSetSemanticRevisionComparison`).
pub fn matches_semantically(
    set: &StatefulSet,
    data: &RevisionData,
    revision: &ControllerRevision,
) -> bool {
    let Ok(recorded) = recorded_template(set, revision) else {
        return false;
    };
    let recorded = recorded.template.unwrap_or_else(|| data.template().clone());
    let Ok(mut template) = known_members(&recorded) else {
        return false;
    };
    set_pod_template_defaults(&mut template);
    let Ok(template) = known_members(&template) else {
        return false;
    };
    data.known()
        .is_some_and(|known| *known == get_patch(template))
        && data.agrees_on_unknown_members(&recorded)
}
