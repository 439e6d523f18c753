//! The store: a revision counter, an ordered map of objects, and an append-only change log.
//!
//! Writers never wait for readers: a watch holds a position in the log and reads on when the
//! revision changes. The log keeps a window of the newest events. A reader whose position has left
//! the window must list again.

mod page;
mod state;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube_test_control_plane_api::custom::DEFINITIONS;
use kube_test_control_plane_api::kinds::{
    Kind, is_admission_policy, is_policy, is_webhook_configuration,
};
use kube_test_control_plane_api::object::{AsIs, Draft, Key, Object};
use tokio::sync::watch;

pub use page::{Collection, ObjectPage};
use state::StoreState;
pub use state::{Change, Compacted, LogEntry};

/// The precondition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No object has the key.
    Absent,
    /// The object has this version.
    Version(u64),
}

/// The precondition of a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch;

/// The objects of a control plane. Everything that [`StoreReader`] does, and writes.
#[derive(Debug)]
pub struct Store(StoreReader);

/// The objects of a control plane, read-only. Clones share their state.
#[derive(Clone, Debug)]
pub struct StoreReader(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: RwLock<StoreState>,
    revision: watch::Sender<u64>,
    /// The revision of the newest write to a role or binding.
    policy: AtomicU64,
    /// The revision of the newest write to a custom resource definition.
    definitions: AtomicU64,
    /// The revision of the newest write to a policy, binding or webhook configuration.
    admission: AtomicU64,
    log_window: usize,
}

impl Deref for Store {
    type Target = StoreReader;

    fn deref(&self) -> &StoreReader {
        &self.0
    }
}

impl StoreReader {
    fn read(&self) -> RwLockReadGuard<'_, StoreState> {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the newest revision.
    pub fn revision(&self) -> u64 {
        self.read().revision
    }

    /// Returns the revision of the newest write to a role or binding.
    pub fn policy_revision(&self) -> u64 {
        self.0.policy.load(Ordering::Acquire)
    }

    /// Returns the revision of the newest write to a custom resource definition.
    pub fn definitions_revision(&self) -> u64 {
        self.0.definitions.load(Ordering::Acquire)
    }

    /// Returns the revision of the newest write to an admission policy, its binding or a webhook
    /// configuration; 0 if there was none.
    pub fn admission_revision(&self) -> u64 {
        self.0.admission.load(Ordering::Acquire)
    }

    /// Returns a receiver of new revisions.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.revision.subscribe()
    }

    /// Returns the newest version of an object.
    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.read().objects.get(key).map(Arc::clone)
    }

    /// Returns the newest versions of a kind's objects in key order, and the current revision. An
    /// empty `namespace` selects all namespaces.
    pub fn list(&self, storage: &str, namespace: &str) -> (u64, Vec<Arc<Object>>) {
        let page = self.page(&Collection::new(storage, namespace), usize::MAX);
        (page.revision, page.objects)
    }

    /// Returns the first objects of a collection, at most `limit`.
    pub fn page(&self, collection: &Collection, limit: usize) -> ObjectPage {
        self.read().page(collection, limit)
    }

    /// Returns the newest versions of all objects, and the current revision.
    pub fn all(&self) -> (u64, Vec<Arc<Object>>) {
        let state = self.read();
        let objects = state.objects.values().map(Arc::clone).collect();
        (state.revision, objects)
    }

    /// As [`page`](Self::page), but as of the revision `at`.
    ///
    /// # Errors
    ///
    /// The log no longer covers the revision `at`.
    pub fn page_at(
        &self,
        collection: &Collection,
        limit: usize,
        at: u64,
    ) -> Result<ObjectPage, Compacted> {
        self.read().page_at(collection, limit, at)
    }

    /// Returns up to `max` events after the revision `after`, oldest first, and the revision up to
    /// which they are complete.
    ///
    /// # Errors
    ///
    /// The log no longer covers the revision `after`.
    pub fn events_after(&self, after: u64, max: usize) -> Result<(u64, Vec<LogEntry>), Compacted> {
        let state = self.read();
        state.check_reach(after)?;
        if after >= state.revision {
            return Ok((after, Vec::new()));
        }
        let skip = usize::try_from(after - state.compacted).unwrap_or(usize::MAX);
        // Each commit is one revision and one event, so revisions are positions in the log.
        let events: Vec<LogEntry> = state.log.iter().skip(skip).take(max).cloned().collect();
        let until = events.last().map_or(state.revision, |last| last.revision);
        Ok((until, events))
    }

    /// Checks that the log covers the events after `after`.
    ///
    /// # Errors
    ///
    /// It does not.
    pub fn check_reach(&self, after: u64) -> Result<(), Compacted> {
        self.read().check_reach(after)
    }
}

impl Store {
    /// Returns an empty store whose log keeps the newest `log_window` events.
    pub fn new(log_window: usize) -> Self {
        let revision = 1;
        Self(StoreReader(Arc::new(Shared {
            state: RwLock::new(StoreState {
                revision,
                objects: BTreeMap::new(),
                log: VecDeque::new(),
                compacted: revision,
            }),
            revision: watch::channel(revision).0,
            policy: AtomicU64::new(revision),
            definitions: AtomicU64::new(revision),
            admission: AtomicU64::new(0),
            log_window: log_window.max(1),
        })))
    }

    /// Returns the store for those who may only read it.
    pub fn reader(&self) -> StoreReader {
        self.0.clone()
    }

    fn write(&self) -> RwLockWriteGuard<'_, StoreState> {
        let state = self.0.0.state.write();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates or replaces an object.
    ///
    /// # Errors
    ///
    /// The stored object does not meet the precondition.
    pub fn put(
        &self,
        kind: &Kind,
        key: Key,
        expect: Expect,
        draft: Draft,
    ) -> Result<Arc<Object>, Mismatch> {
        self.commit(key, expect, |key, revision| {
            Object::commit(kind, key, draft, revision)
        })
    }

    /// Stores an object, replacing any object with its key.
    pub fn replace(&self, kind: &Kind, key: Key, draft: Draft) {
        let mut state = self.write();
        let object = Object::commit(kind, key, draft, state.revision + 1);
        self.insert(&mut state, Arc::new(object));
    }

    /// Stores an object verbatim, replacing any object with its key.
    pub fn put_as_is(&self, object: &AsIs) {
        let mut state = self.write();
        let object = object.clone().commit(state.revision + 1);
        self.insert(&mut state, Arc::new(object));
    }

    /// Removes an object.
    ///
    /// # Errors
    ///
    /// The stored object has another version.
    pub fn delete(&self, kind: &Kind, key: Key, version: u64) -> Result<Arc<Object>, Mismatch> {
        let state = &mut *self.write();
        let found = state
            .objects
            .get(&key)
            .filter(|o| o.resource_version == version);
        let previous = Arc::clone(found.ok_or(Mismatch)?);
        let draft = previous.draft();
        let object = Arc::new(Object::commit(kind, key, draft, state.revision + 1));
        self.remove(state, Arc::clone(&object));
        Ok(object)
    }

    /// Stores a version of another server's object, which keeps that server's resource version.
    pub fn put_copy(&self, object: Object) {
        let mut state = self.write();
        self.insert(&mut state, Arc::new(object));
    }

    /// Removes another server's object. `object` is its last version.
    pub fn remove_copy(&self, object: Arc<Object>) {
        let mut state = self.write();
        self.remove(&mut state, object);
    }

    fn commit(
        &self,
        key: Key,
        expect: Expect,
        encode: impl FnOnce(Key, u64) -> Object,
    ) -> Result<Arc<Object>, Mismatch> {
        let state = &mut *self.write();
        let found = state.objects.get(&key).map_or(Expect::Absent, |object| {
            Expect::Version(object.resource_version)
        });
        if found != expect {
            return Err(Mismatch);
        }
        let object = Arc::new(encode(key, state.revision + 1));
        self.insert(state, Arc::clone(&object));
        Ok(object)
    }

    fn insert(&self, state: &mut StoreState, object: Arc<Object>) {
        let previous = state
            .objects
            .insert(object.key.clone(), Arc::clone(&object));
        let change = match previous {
            Some(_) => Change::Modified,
            None => Change::Added,
        };
        self.append(state, change, object, previous);
    }

    fn remove(&self, state: &mut StoreState, object: Arc<Object>) {
        let previous = state.objects.remove(&object.key);
        self.append(state, Change::Deleted, object, previous);
    }

    fn append(
        &self,
        state: &mut StoreState,
        change: Change,
        object: Arc<Object>,
        previous: Option<Arc<Object>>,
    ) {
        state.revision += 1;
        let revision = state.revision;
        if is_policy(&object.key.storage) {
            self.0.0.policy.store(revision, Ordering::Release);
        }
        let storage = &*object.key.storage;
        if is_admission_policy(storage) || is_webhook_configuration(storage) {
            self.0.0.admission.store(revision, Ordering::Release);
        }
        if &*object.key.storage == DEFINITIONS {
            self.0.0.definitions.store(revision, Ordering::Release);
        }
        state.log.push_back(LogEntry {
            revision,
            change,
            object,
            previous,
        });
        while state.log.len() > self.0.0.log_window {
            state.compacted += 1;
            state.log.pop_front();
        }
        self.0.0.revision.send_replace(revision);
    }

    /// Drops all events up to and including `revision`, as etcd's compaction does.
    pub fn compact(&self, revision: u64) {
        let state = &mut *self.write();
        while state.log.front().is_some_and(|e| e.revision <= revision) {
            state.compacted += 1;
            state.log.pop_front();
        }
    }
}
