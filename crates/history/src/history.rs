//! The seam to a set's history.

use std::sync::Arc;

use async_trait::async_trait;
use kube_apimachinery::selector::Selector;
use statefulset_client::cache::indexer::{IndexKey, Indexer};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::index::controller_index_key;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::error::Error;
use crate::new_revision::NewRevision;

#[cfg(test)]
mod tests;

/// A revision that was created, or that was there already with the same data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The revision as the server has it.
    pub revision: Arc<ControllerRevision>,
    /// The collision count that led to its name.
    pub collision_count: i32,
}

/// The history of a set.
///
/// Upstream: `history.Interface`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait History: Send + Sync {
    /// The revisions that belong to the set or to nobody and that the selector selects, in no
    /// particular order. Reads the cache.
    fn list_controller_revisions(
        &self,
        set: &StatefulSet,
        selector: &Selector,
    ) -> Vec<Arc<ControllerRevision>>;

    /// Creates a revision, under another name as long as the name is taken by other data. Where
    /// the taken name has the same data, that revision is returned as it is.
    ///
    /// # Errors
    ///
    /// What the API server or the way to it answered.
    async fn create_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &NewRevision,
        collision_count: i32,
    ) -> Result<Created, Error>;

    /// Gives a revision another number. A conflict is retried on a fresh copy.
    ///
    /// # Errors
    ///
    /// What the API server or the way to it answered; the last conflict of 4 attempts.
    async fn update_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
        new_revision: i64,
    ) -> Result<Arc<ControllerRevision>, Error>;

    /// Deletes a revision, if it is still the one that was read: neither another one of the name
    /// nor changed since, as by an adoption.
    ///
    /// # Errors
    ///
    /// What the API server or the way to it answered: a conflict where the revision has changed,
    /// not found included.
    async fn delete_controller_revision(&self, revision: &ControllerRevision) -> Result<(), Error>;

    /// Makes the set the controller of a revision that has none.
    ///
    /// # Errors
    ///
    /// The revision has a controller, or what the API server answered, not found included.
    async fn adopt_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<(), Error>;

    /// Makes the set no longer the controller of a revision. A revision that is gone, or refuses
    /// because it is no longer the set's, counts as released.
    ///
    /// # Errors
    ///
    /// What the API server or the way to it answered.
    async fn release_controller_revision(
        &self,
        set: &StatefulSet,
        revision: &ControllerRevision,
    ) -> Result<(), Error>;
}

/// Lists the set's revisions from a cache: those it controls and those nobody does, if the
/// selector selects them.
///
/// Upstream: `realHistory.ListControllerRevisions`.
pub fn list_controller_revisions(
    cache: &Indexer<ControllerRevision>,
    set: &StatefulSet,
    selector: &Selector,
) -> Vec<Arc<ControllerRevision>> {
    let owned = controller_index_key(set.namespace(), Some(&set.controller_reference()));
    let mut revisions = cache.by_index(&owned);
    revisions.extend(cache.by_index(&IndexKey::orphans(set.namespace())));
    revisions.retain(|revision| selector.matches(&revision.labels));
    revisions
}
