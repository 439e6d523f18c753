//! What an actor has to do, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_store::clock::later;

/// How long an actor waits before it tries again what failed.
pub(crate) const RETRY: Duration = Duration::from_millis(500);

/// Objects with the time at which to look at each; an object is on it once.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    by_time: BTreeSet<(Instant, Key)>,
    by_key: BTreeMap<Key, Instant>,
}

impl Agenda {
    /// Looks at the object at once.
    pub(super) fn now(&mut self, key: &Key) {
        self.at(key, Instant::now());
    }

    /// Looks at the object again after a failure.
    pub(super) fn retry(&mut self, key: &Key) {
        self.after(key, RETRY);
    }

    /// Looks at the object after a while.
    pub(super) fn after(&mut self, key: &Key, delay: Duration) {
        self.at(key, later(Instant::now(), delay));
    }

    /// Looks at the object at a time, or earlier if that is planned already.
    pub(super) fn at(&mut self, key: &Key, time: Instant) {
        if let Some(planned) = self.by_key.get(key) {
            if *planned <= time {
                return;
            }
            self.by_time.remove(&(*planned, key.clone()));
        }
        self.by_time.insert((time, key.clone()));
        self.by_key.insert(key.clone(), time);
    }

    /// The time of the next object.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(time, _)| *time)
    }

    /// Takes an object off whose time has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Key> {
        let (time, key) = self.by_time.first()?;
        if *time > now {
            return None;
        }
        let entry = (*time, key.clone());
        self.by_time.remove(&entry);
        self.by_key.remove(&entry.1);
        Some(entry.1)
    }
}
