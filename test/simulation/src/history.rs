//! The history of a run: every version of every object.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record::{Record, SetKey};
use crate::views::{Claim, Pod, Revision, Set};

/// Versions of the objects of one kind, by namespace and name.
#[derive(Debug)]
pub struct Versions<T>(BTreeMap<SetKey, Vec<Version<T>>>);

/// An object, or none if it was deleted, as of a revision of the store.
type Version<T> = (u64, Option<Arc<T>>);

impl<T> Default for Versions<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Versions<T> {
    fn add(&mut self, key: SetKey, revision: u64, object: Option<T>) {
        let versions = self.0.entry(key).or_default();
        versions.push((revision, object.map(Arc::new)));
    }

    /// Returns an object as of a revision of the store.
    pub fn at(&self, key: &SetKey, revision: u64) -> Option<&Arc<T>> {
        let versions = self.0.get(key)?;
        let known = versions.partition_point(|(at, _)| *at <= revision);
        versions.get(known.checked_sub(1)?)?.1.as_ref()
    }

    /// Returns the objects of a namespace as of a revision of the store, by name.
    pub fn all_at(&self, namespace: &str, revision: u64) -> impl Iterator<Item = &Arc<T>> {
        let first = (namespace.to_owned(), String::new());
        let keys = self.0.range(first..);
        let keys = keys.take_while(move |((found, _), _)| found == namespace);
        keys.filter_map(move |(key, _)| self.at(key, revision))
    }

    /// Returns the changes of an object after one revision and up to another.
    pub fn changes<'h>(
        &'h self,
        key: &SetKey,
        after: u64,
        until: u64,
    ) -> impl Iterator<Item = (u64, Option<&'h Arc<T>>)> + use<'h, T> {
        let versions = self.0.get(key).map_or(&[][..], Vec::as_slice);
        let from = versions.partition_point(|(at, _)| *at <= after);
        let to = versions.partition_point(|(at, _)| *at <= until);
        let changes = versions.get(from..to).unwrap_or_default();
        changes.iter().map(|(at, object)| (*at, object.as_ref()))
    }

    /// Returns the versions of an object from one revision to another, both included.
    pub fn during<'h>(
        &'h self,
        key: &SetKey,
        from: u64,
        until: u64,
    ) -> impl Iterator<Item = &'h Arc<T>> + use<'h, T> {
        let later = self.changes(key, from, until);
        self.at(key, from)
            .into_iter()
            .chain(later.filter_map(|(_, object)| object))
    }

    /// Returns all objects that ever existed.
    pub fn keys(&self) -> impl Iterator<Item = &SetKey> {
        self.0.keys()
    }
}

/// The history of a run.
#[derive(Debug, Default)]
pub struct History {
    /// StatefulSets.
    pub sets: Versions<Set>,
    /// Pods.
    pub pods: Versions<Pod>,
    /// Claims.
    pub claims: Versions<Claim>,
    /// ControllerRevisions.
    pub revisions: Versions<Revision>,
    /// The newest revision.
    pub newest: u64,
}

impl History {
    /// Reads the history from the commits of a record.
    pub fn read(record: &Record) -> Self {
        let mut history = Self::default();
        for commit in &record.commits {
            let entry = &commit.entry;
            let key = &entry.object.key;
            let name = (key.namespace.to_string(), key.name.to_string());
            let is_gone = entry.change == kube_test_control_plane::store::Change::Deleted;
            let value = || (!is_gone).then(|| entry.object.draft().to_value());
            let at = entry.revision;
            history.newest = at;
            match &*key.storage {
                "statefulsets" => {
                    let set = value().map(|value| Set::read(&value));
                    history.sets.add(name, at, set);
                }
                "pods" => {
                    let pod = value().map(|value| Pod::read(&value));
                    history.pods.add(name, at, pod);
                }
                "persistentvolumeclaims" => {
                    let claim = value().map(|value| Claim::read(&value));
                    history.claims.add(name, at, claim);
                }
                "controllerrevisions" => {
                    let revision = value().map(|value| Revision::read(&value));
                    history.revisions.add(name, at, revision);
                }
                _ => {}
            }
        }
        history
    }
}
