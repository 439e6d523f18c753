//! An actor's schedule: the objects to process and their times.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_store::clock::later;

/// Delay before an actor retries a failed object.
pub(crate) const RETRY: Duration = Duration::from_millis(500);

/// Objects with the time to process each of them. An object is scheduled at most once.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    by_time: BTreeSet<(Instant, Key)>,
    by_key: BTreeMap<Key, Instant>,
}

impl Agenda {
    /// Schedules the object for now.
    pub(crate) fn now(&mut self, key: &Key) {
        self.at(key, Instant::now());
    }

    /// Schedules a retry of the object after a failure.
    pub(crate) fn retry(&mut self, key: &Key) {
        self.after(key, RETRY);
    }

    /// Schedules the object after a delay.
    pub(crate) fn after(&mut self, key: &Key, delay: Duration) {
        self.at(key, later(Instant::now(), delay));
    }

    /// Schedules the object for a time, or keeps an earlier one.
    pub(crate) fn at(&mut self, key: &Key, time: Instant) {
        if let Some(planned) = self.by_key.get(key) {
            if *planned <= time {
                return;
            }
            self.by_time.remove(&(*planned, key.clone()));
        }
        self.by_time.insert((time, key.clone()));
        self.by_key.insert(key.clone(), time);
    }

    /// Returns the time of the next object.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(time, _)| *time)
    }

    /// Removes and returns an object that is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Key> {
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
