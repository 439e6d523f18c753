//! The objects and the log at one revision.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kube_test_control_plane_api::object::{Key, Object};

use super::page::{Collection, ObjectPage};

/// The effect of a commit on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was removed.
    Deleted,
}

/// One committed write.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// The revision of the write.
    pub revision: u64,
    /// The effect of the write.
    pub change: Change,
    /// The object after the write; for a deletion, the last version with the deletion's revision.
    pub object: Arc<Object>,
    /// The object before the write.
    pub previous: Option<Arc<Object>>,
}

/// The log no longer contains the requested events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// The oldest revision that readers can start from.
    pub oldest: u64,
}

/// The state of the store.
#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) revision: u64,
    pub(super) objects: BTreeMap<Key, Arc<Object>>,
    pub(super) log: VecDeque<LogEntry>,
    /// The newest revision whose event was dropped.
    pub(super) compacted: u64,
}

impl StoreState {
    /// Checks that the log covers the events after `after`.
    pub(super) fn check_reach(&self, after: u64) -> Result<(), Compacted> {
        if after < self.compacted {
            return Err(Compacted {
                oldest: self.compacted,
            });
        }
        Ok(())
    }

    /// Returns the newest versions. Objects after the page are counted but not read.
    pub(super) fn page(&self, collection: &Collection, limit: usize) -> ObjectPage {
        let objects = self.objects.range(&collection.first..&collection.end);
        ObjectPage::of(self.revision, objects, limit)
    }

    /// Returns the versions as of the revision `at`.
    pub(super) fn page_at(
        &self,
        collection: &Collection,
        limit: usize,
        at: u64,
    ) -> Result<ObjectPage, Compacted> {
        self.check_reach(at)?;
        let undone = self.undone(collection, at);
        let unchanged = self.objects.range(&collection.first..&collection.end);
        if undone.is_empty() {
            return Ok(ObjectPage::of(at, unchanged, limit));
        }
        let unchanged = unchanged.filter(|(key, _)| !undone.contains_key(key));
        let mut unchanged = unchanged.peekable();
        let restored = undone
            .iter()
            .filter_map(|(key, object)| Some((*key, (*object)?)));
        let mut restored = restored.peekable();
        let in_order = std::iter::from_fn(|| match (unchanged.peek(), restored.peek()) {
            (Some((one, _)), Some((other, _))) if other < one => restored.next(),
            (Some(_), _) => unchanged.next(),
            (None, _) => restored.next(),
        });
        Ok(ObjectPage::of(at, in_order, limit))
    }

    /// Returns the objects that changed after a revision, each as it was then, if it existed.
    fn undone(&self, collection: &Collection, at: u64) -> BTreeMap<&Key, Option<&Arc<Object>>> {
        let later = self
            .log
            .iter()
            .rev()
            .take_while(|entry| entry.revision > at);
        later
            .filter(|entry| collection.contains(&entry.object.key))
            .map(|entry| (&entry.object.key, entry.previous.as_ref()))
            .collect()
    }
}
