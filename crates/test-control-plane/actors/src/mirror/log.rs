//! The mirrored objects and their events in the order of arrival.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, Compacted, LogEntry};

/// Limit of the events kept for slow actors.
const WINDOW: usize = 20_000;

#[derive(Debug, Default)]
struct State {
    /// The number of events so far.
    position: u64,
    objects: BTreeMap<Key, Arc<Object>>,
    events: VecDeque<LogEntry>,
}

/// Objects and events. The log counts its own positions: a real server's versions increase across
/// all kinds, but the watches of two kinds deliver them out of order.
#[derive(Debug)]
pub(crate) struct Log {
    state: Mutex<State>,
    position: watch::Sender<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            position: watch::channel(0).0,
        }
    }
}

impl Log {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.state().objects.get(key).map(Arc::clone)
    }

    pub(crate) fn list(&self, storage: &str, namespace: &str) -> Vec<Arc<Object>> {
        let state = self.state();
        let wanted = |key: &Key| {
            &*key.storage == storage && (namespace.is_empty() || *key.namespace == *namespace)
        };
        let found = state.objects.iter().filter(|(key, _)| wanted(key));
        found.map(|(_, object)| Arc::clone(object)).collect()
    }

    pub(crate) fn all(&self) -> (u64, Vec<Arc<Object>>) {
        let state = self.state();
        let objects = state.objects.values().map(Arc::clone).collect();
        (state.position, objects)
    }

    pub(crate) fn events_after(
        &self,
        after: u64,
        max: usize,
    ) -> Result<(u64, Vec<LogEntry>), Compacted> {
        let state = self.state();
        let oldest = state.position - state.events.len() as u64;
        if after < oldest {
            return Err(Compacted { oldest });
        }
        let skip = usize::try_from(after - oldest).unwrap_or(usize::MAX);
        let events: Vec<LogEntry> = state.events.iter().skip(skip).take(max).cloned().collect();
        Ok((after + events.len() as u64, events))
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.position.subscribe()
    }

    /// Stores a version of an existing object, unless a newer one is known.
    pub(super) fn put(&self, object: Object) {
        let mut state = self.state();
        state.put(object);
        self.position.send_replace(state.position);
    }

    /// Stores the final version of a deleted object.
    pub(super) fn remove(&self, object: Object) {
        let mut state = self.state();
        let known = state.objects.get(&object.key);
        // A new object with this name may exist already.
        if known.is_some_and(|known| known.uid == object.uid) {
            state.remove(Arc::new(object));
        }
        self.position.send_replace(state.position);
    }

    /// Replaces all objects of a kind; missing ones are deleted.
    pub(super) fn replace(&self, storage: &str, objects: Vec<Object>) {
        let mut state = self.state();
        let left: BTreeSet<&Key> = objects.iter().map(|object| &object.key).collect();
        let known = state.objects.values();
        let gone = known.filter(|o| &*o.key.storage == storage && !left.contains(&o.key));
        let gone: Vec<Arc<Object>> = gone.map(Arc::clone).collect();
        for object in gone {
            state.remove(object);
        }
        for object in objects {
            state.put(object);
        }
        self.position.send_replace(state.position);
    }
}

impl State {
    fn put(&mut self, object: Object) {
        let known = self.objects.get(&object.key).map(Arc::clone);
        if let Some(known) = &known {
            if known.uid != object.uid {
                self.remove(Arc::clone(known));
            } else if known.resource_version >= object.resource_version {
                return;
            }
        }
        let object = Arc::new(object);
        let previous = self.objects.insert(object.key.clone(), Arc::clone(&object));
        let change = if previous.is_some() {
            Change::Modified
        } else {
            Change::Added
        };
        self.append(change, object, previous);
    }

    fn remove(&mut self, object: Arc<Object>) {
        let previous = self.objects.remove(&object.key);
        self.append(Change::Deleted, object, previous);
    }

    fn append(&mut self, change: Change, object: Arc<Object>, previous: Option<Arc<Object>>) {
        self.position += 1;
        self.events.push_back(LogEntry {
            revision: self.position,
            change,
            object,
            previous,
        });
        if self.events.len() > WINDOW {
            self.events.pop_front();
        }
    }
}
