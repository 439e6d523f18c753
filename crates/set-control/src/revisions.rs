//! Current and update revision of a set, and deletion of unused revisions.

use std::collections::BTreeSet;
use std::sync::Arc;

use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_history::{
    History, NewRevision, RevisionData, find_equal_revisions, next_revision,
    stateful_set_matches_revision,
};

use crate::error::Error;

#[cfg(test)]
mod tests;

/// The two revisions of a set's pods.
pub(crate) struct CurrentAndUpdate {
    pub(crate) current: Arc<ControllerRevision>,
    pub(crate) update: Arc<ControllerRevision>,
    /// The collision count to record.
    pub(crate) collision_count: i32,
}

/// Returns the recorded revision that holds the set's template. As unknown fields appear and
/// disappear, several revisions may match: equal bytes win, then the latest revision, then the
/// newest of the older ones. With `semantic`, the latest may also differ in form.
fn find_equal<'a>(
    semantic: bool,
    set: &StatefulSet,
    data: &RevisionData,
    revisions: &'a [Arc<ControllerRevision>],
) -> Option<&'a Arc<ControllerRevision>> {
    let matches = |latest: &&Arc<ControllerRevision>| {
        semantic && stateful_set_matches_revision(set, data, latest)
    };
    let exact = revisions.iter().rfind(|revision| is_exact(data, revision));
    exact
        .or_else(|| revisions.last().filter(matches))
        .or_else(|| find_equal_revisions(revisions, data).next_back())
}

/// True if the revision holds exactly these bytes.
fn is_exact(data: &RevisionData, revision: &ControllerRevision) -> bool {
    data.is_recorded_as(&revision.data) && !revision.is_data_replaced
}

/// Finds a set's current and update revision in its sorted history. Creates or renumbers the update
/// revision if needed.
///
/// # Errors
///
/// The set's template can't be encoded, or a revision can't be written.
///
/// Upstream: `getStatefulSetRevisions`.
pub(crate) async fn get_stateful_set_revisions(
    history: &dyn History,
    gates: FeatureGates,
    set: &StatefulSet,
    revisions: &[Arc<ControllerRevision>],
) -> Result<CurrentAndUpdate, Error> {
    let (template, latest) = (&set.spec.template, revisions.last());
    let mut collision_count = set.status.collision_count.unwrap_or(0);
    let update = match latest {
        // An earlier sync has compared them.
        Some(latest) if template.memo().equals_latest(gates, revisions) => Arc::clone(latest),
        _ => {
            let data = RevisionData::at(template, gates)?;
            let semantic = gates.stateful_set_semantic_revision_comparison;
            let next = next_revision(revisions);
            match find_equal(semantic, set, &data, revisions) {
                // The update revision has not changed.
                Some(equal) if latest.is_some_and(|latest| Arc::ptr_eq(equal, latest)) => {
                    template.memo().set_equals_latest(gates, revisions);
                    Arc::clone(equal)
                }
                // The user went back to an earlier template: its revision becomes the latest.
                Some(equal) => history.update_controller_revision(set, equal, next).await?,
                None => {
                    let revision = NewRevision::new(set, &data, next, collision_count);
                    let count = &mut collision_count;
                    let created = history.create_controller_revision(set, &revision, count);
                    let created = created.await?;
                    // The next sync finds it at the end of the history.
                    if is_exact(&data, &created) {
                        let sorted = revisions.iter().chain([&created]);
                        template.memo().set_equals_latest(gates, sorted);
                    }
                    created
                }
            }
        }
    };
    let recorded = &*set.status.current_revision;
    let current = revisions.iter().find(|it| *it.name == *recorded);
    // Without a current revision, the history begins with the update revision.
    Ok(CurrentAndUpdate {
        current: Arc::clone(current.unwrap_or(&update)),
        update,
        collision_count,
    })
}

/// Deletes the oldest revisions beyond the limit that neither the status nor a pod uses; a
/// negative limit keeps all. `revisions` is sorted from the oldest to the newest. Stops at the
/// first failure.
///
/// # Errors
///
/// A revision can't be deleted.
///
/// Upstream: `truncateHistory`.
pub(crate) async fn truncate_history(
    history: &dyn History,
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    revisions: &[Arc<ControllerRevision>],
    used: Option<&CurrentAndUpdate>,
) -> Result<(), Error> {
    let limit = usize::try_from(set.spec.revision_history_limit).unwrap_or(usize::MAX);
    if revisions.len() <= limit {
        return Ok(());
    }
    let mut live: BTreeSet<&str> = pods.iter().map(|pod| pod.revision()).collect();
    if let Some(used) = used {
        live.extend([&*used.current.name, &*used.update.name]);
    }
    let mut unused: Vec<&Arc<ControllerRevision>> = revisions.iter().collect();
    unused.retain(|revision| !live.contains(&*revision.name));
    unused.truncate(unused.len().saturating_sub(limit));
    for revision in unused {
        history.delete_controller_revision(revision).await?;
    }
    Ok(())
}
