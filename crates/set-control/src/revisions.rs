//! Current and update revision of a set.

use std::num::NonZeroUsize;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use kube_apimachinery::hash::{FNV1_32_OFFSET, fnv1_32};
use lru::LruCache;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_history::{
    Created, History, NewRevision, RevisionData, find_equal_revisions, matches_semantically,
    next_revision,
};

use crate::error::Error;

#[cfg(test)]
mod tests;

/// Maximum of cached comparisons, about 150 bytes each.
///
/// Upstream: `maxRevisionEqualityCacheEntries`.
const MAX_REVISION_EQUALITY_CACHE_ENTRIES: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// The two revisions of a set's pods.
pub(crate) struct CurrentAndUpdate {
    pub(crate) current: Arc<ControllerRevision>,
    pub(crate) update: Arc<ControllerRevision>,
    /// The collision count to record.
    pub(crate) collision_count: i32,
}

/// A set's uid and generation, the hash of its template's recorded data (a server upgrade may
/// change a stored template without a new generation), and the resource version of a matching
/// revision.
type MatchKey = (Box<str>, i64, u32, Box<str>);

/// Caches the revisions that matched a set, because the comparison is expensive.
pub(crate) struct SemanticMatches(Mutex<LruCache<MatchKey, ()>>);

impl SemanticMatches {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(LruCache::new(
            MAX_REVISION_EQUALITY_CACHE_ENTRIES,
        )))
    }

    /// True if the revision is equal or semantically equal to the set's template.
    ///
    /// Upstream: `statefulSetMatchesRevision`.
    fn stateful_set_matches_revision(
        &self,
        set: &StatefulSet,
        data: &RevisionData,
        revision: &ControllerRevision,
    ) -> bool {
        let key = (
            set.uid().into(),
            set.metadata.generation,
            fnv1_32(data.recorded().as_bytes(), FNV1_32_OFFSET),
            revision.resource_version.clone(),
        );
        if self.lock().get(&key).is_some() {
            return true;
        }
        let matches =
            data.equals(&revision.data.to_str()) || matches_semantically(set, data, revision);
        if matches {
            self.lock().put(key, ());
        }
        matches
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<MatchKey, ()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the recorded revision that holds the set's template. As unknown members appear and
/// disappear, several revisions may match: equal bytes win, then the latest revision, then the
/// newest of the older ones.
fn find_equal<'a>(
    semantic: Option<&SemanticMatches>,
    set: &StatefulSet,
    data: &RevisionData,
    revisions: &'a [Arc<ControllerRevision>],
) -> Option<&'a Arc<ControllerRevision>> {
    let is_exact = |revision: &&Arc<ControllerRevision>| {
        data.is_recorded_as(&revision.data) && !revision.is_data_replaced
    };
    let is_equal = |latest: &&Arc<ControllerRevision>| match semantic {
        Some(semantic) => semantic.stateful_set_matches_revision(set, data, latest),
        None => find_equal_revisions(slice::from_ref(latest), data)
            .next()
            .is_some(),
    };
    let (latest, older) = revisions.split_last()?;
    let exact = revisions.iter().rfind(is_exact);
    exact
        .or_else(|| Some(latest).filter(is_equal))
        .or_else(|| find_equal_revisions(older, data).next_back())
}

/// Returns a set's current and update revision without looking at the template, if an earlier sync
/// found that the latest revision of the same history holds it.
pub(crate) fn known_revisions(
    set: &StatefulSet,
    gates: FeatureGates,
    sorted: &[Arc<ControllerRevision>],
) -> Option<CurrentAndUpdate> {
    let latest = sorted.last()?;
    let is_known = set.spec.template.memo().equals_latest(gates, sorted);
    is_known.then(|| CurrentAndUpdate {
        current: current_revision(set, sorted, latest),
        update: Arc::clone(latest),
        collision_count: set.status.collision_count.unwrap_or(0),
    })
}

/// Returns the revision that the status names as current, otherwise the update revision.
fn current_revision(
    set: &StatefulSet,
    revisions: &[Arc<ControllerRevision>],
    update: &Arc<ControllerRevision>,
) -> Arc<ControllerRevision> {
    let recorded = &*set.status.current_revision;
    let current = revisions
        .iter()
        .find(|revision| *revision.name == *recorded);
    Arc::clone(current.unwrap_or(update))
}

/// Finds a set's current and update revision in its sorted history. Creates or renumbers the update
/// revision if needed. `data` is the recorded form of the set's template. Without `semantic`,
/// revisions are compared only by their bytes.
///
/// # Errors
///
/// A revision can't be written.
///
/// Upstream: `getStatefulSetRevisions`.
pub(crate) async fn get_stateful_set_revisions(
    history: &dyn History,
    semantic: Option<&SemanticMatches>,
    set: &StatefulSet,
    data: &RevisionData,
    revisions: &[Arc<ControllerRevision>],
) -> Result<CurrentAndUpdate, Error> {
    let collision_count = set.status.collision_count.unwrap_or(0);
    let next = next_revision(revisions);
    let latest = revisions.last();
    let Created {
        revision: update,
        collision_count,
    } = match (find_equal(semantic, set, data, revisions), latest) {
        (Some(equal), Some(latest)) if Arc::ptr_eq(equal, latest) => Created {
            revision: Arc::clone(latest),
            collision_count,
        },
        (Some(equal), _) => {
            let revision = history.update_controller_revision(set, equal, next).await?;
            Created {
                revision,
                collision_count,
            }
        }
        (None, _) => {
            let revision = NewRevision::new(set, data, next, collision_count);
            history
                .create_controller_revision(set, &revision, collision_count)
                .await?
        }
    };
    Ok(CurrentAndUpdate {
        current: current_revision(set, revisions, &update),
        update,
        collision_count,
    })
}
