//! Due times of an actor's objects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_store::clock::later;

/// Delay before an actor retries a failed object.
pub(crate) const RETRY: Duration = Duration::from_millis(500);

/// Objects with the time of their next check. Each object has one entry.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    by_time: BTreeSet<(Instant, Key)>,
    by_key: BTreeMap<Key, Instant>,
}

impl Agenda {
    /// Schedules the object immediately.
    pub(super) fn now(&mut self, key: &Key) {
        self.at(key, Instant::now());
    }

    /// Schedules the object after a failure.
    pub(super) fn retry(&mut self, key: &Key) {
        self.after(key, RETRY);
    }

    /// Schedules the object after a delay.
    pub(super) fn after(&mut self, key: &Key, delay: Duration) {
        self.at(key, later(Instant::now(), delay));
    }

    /// Schedules the object at a time, unless it is already due earlier.
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

    /// Returns the time at which the next object is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(time, _)| *time)
    }

    /// Removes and returns an object that is due.
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
