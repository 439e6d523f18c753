//! Ownership changes by writes and applies.
//!
//! Upstream: `merge.Updater` of structured-merge-diff.

use std::collections::BTreeMap;

use serde_json::Value;

use super::conflict::{Conflict, Conflicts};
use super::managers::{Fields, Managed, ManagerId};
use super::reset_fields::Filter;
use super::set::Set;
use super::typed::{self, Comparison, TypeRef};
use super::versions::{self, Versioned};

/// The properties of one request.
#[derive(Debug)]
pub(super) struct Updater<'a> {
    /// The version of the request.
    pub(super) api_version: &'a str,
    /// The fields that the request can change.
    pub(super) filter: &'a Filter,
}

/// The result of merging a configuration into an object.
#[derive(Debug)]
pub(super) struct MergeResult {
    /// The object; `None` if it is unchanged.
    pub(super) object: Option<Value>,
    /// Its managers.
    pub(super) managed: Managed,
}

impl Updater<'_> {
    /// Gives `manager` the changes between two versions of an object, in the request's version, and
    /// takes them from all other managers.
    pub(super) fn update(
        &self,
        live: &Versioned<'_>,
        new: &Versioned<'_>,
        mut managed: Managed,
        manager: &ManagerId,
    ) -> Managed {
        Self::reconcile(live, &mut managed);
        let comparison = typed::compare(live.of(), &live.value, &new.value);
        // An update forces its changes, so it has no conflicts.
        let _ = self.resolve(live, new, &comparison, &mut managed, manager, true);
        let owned = managed
            .fields
            .remove(manager)
            .map_or(Set::EMPTY, |fields| fields.set);
        let set = owned
            .difference(&comparison.removed)
            .union(&comparison.modified)
            .union(&comparison.added);
        let set = self.filter.apply(&set);
        if !set.is_empty() {
            let api_version = self.api_version.to_owned();
            let fields = Fields {
                set,
                api_version,
                applied: false,
            };
            managed.fields.insert(manager.clone(), fields);
        }
        managed
    }

    /// Merges the configuration of `manager` into an object.
    ///
    /// # Errors
    ///
    /// Other managers own the changed fields, and `force` is not set.
    pub(super) fn apply(
        &self,
        live: &Versioned<'_>,
        config: &Value,
        mut managed: Managed,
        manager: &ManagerId,
        force: bool,
    ) -> Result<MergeResult, Conflicts> {
        Self::reconcile(live, &mut managed);
        let of = live.of();
        let merged = live.with(typed::merge(of, &live.value, config));
        let set = self.filter.apply(&typed::field_set(of, config));
        let api_version = self.api_version.to_owned();
        let fields = Fields {
            set,
            api_version,
            applied: true,
        };
        let last = managed.fields.insert(manager.clone(), fields);
        let new = last
            .filter(|last| !last.set.is_empty())
            .and_then(|last| self.prune(&merged, &managed, &last))
            .unwrap_or(merged);
        let comparison = typed::compare(of, &live.value, &new.value);
        self.resolve(live, &new, &comparison, &mut managed, manager, force)?;
        let changed = new.value != live.value;
        Ok(MergeResult {
            object: changed.then(|| new.value.into_owned()),
            managed,
        })
    }

    /// Takes the changed fields from all managers except `manager`.
    ///
    /// # Errors
    ///
    /// Other managers own the changed fields, and `force` is not set.
    fn resolve(
        &self,
        live: &Versioned<'_>,
        new: &Versioned<'_>,
        comparison: &Comparison,
        managed: &mut Managed,
        manager: &ManagerId,
        force: bool,
    ) -> Result<(), Conflicts> {
        if managed.fields.is_empty() {
            return Ok(());
        }
        let mut versions: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        let filtered = Some(self.filter.apply_to(comparison));
        versions.insert(self.api_version.to_owned(), filtered);
        for fields in managed.fields.values() {
            if !versions.contains_key(&fields.api_version) {
                let found = self.compare_in(&fields.api_version, live, new);
                versions.insert(fields.api_version.clone(), found);
            }
        }
        let compared = |fields: &Fields| versions.get(&fields.api_version)?.as_ref();
        managed
            .fields
            .retain(|id, fields| id == manager || compared(fields).is_some());
        let mut conflicts = Vec::new();
        let mut left = managed.fields.clone();
        for (id, fields) in &mut left {
            if let Some(changes) = compared(fields).filter(|_| id != manager) {
                let taken = fields.set.intersection(&changes.changed());
                fields.set = fields.set.difference(&taken).difference(&changes.removed);
                conflicts.extend(taken.paths().into_iter().map(|path| Conflict {
                    manager: id.clone(),
                    path,
                }));
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(Conflicts(conflicts));
        }
        left.retain(|_, fields| !fields.set.is_empty());
        managed.fields = left;
        Ok(())
    }

    /// Returns the changes in terms of another version; `None` if that version doesn't exist. Only the
    /// kinds of the server itself declare in each of their versions what a request can't change.
    fn compare_in(
        &self,
        api_version: &str,
        live: &Versioned<'_>,
        new: &Versioned<'_>,
    ) -> Option<Comparison> {
        let (live, new) = (live.convert(api_version)?, new.convert(api_version)?);
        let comparison = typed::compare(live.of(), &live.value, &new.value);
        Some(if new.kind.custom.is_some() {
            comparison
        } else {
            self.filter.apply_to(&comparison)
        })
    }

    /// Replaces children of fields that have become atomic. Drops entries of removed versions.
    fn reconcile(live: &Versioned<'_>, managed: &mut Managed) {
        managed.fields.retain(|_, fields| {
            let Some(kind) = versions::kind_in(&live.kind, &fields.api_version) else {
                return false;
            };
            fields.set = typed::reconcile(&fields.set, TypeRef::of_kind(&kind));
            true
        });
    }

    /// Removes the fields that the manager applied last time, no longer applies, and shares with no
    /// other manager. Returns `None` if there are none.
    fn prune(
        &self,
        merged: &Versioned<'_>,
        managed: &Managed,
        last: &Fields,
    ) -> Option<Versioned<'static>> {
        let merged = merged.convert(&last.api_version)?;
        let of = merged.of();
        let fields = |value: &Value| typed::with_named_fields(&typed::field_set(of, value), of);
        let last = typed::with_named_fields(&last.set, of);
        let without_last = merged.with(typed::remove(of, &merged.value, &last));
        let pruned = add_back_owned(&merged, without_last, managed);
        let pruned = pruned.convert(&merged.kind.api_version())?;
        // Restores removed fields that the manager didn't own.
        let gone = fields(&merged.value).difference(&fields(&pruned.value));
        let pruned = merged.with(typed::remove(of, &merged.value, &gone.intersection(&last)));
        pruned.convert(self.api_version).map(Versioned::into_owned)
    }
}

/// Restores removed fields that a manager still owns.
fn add_back_owned(
    merged: &Versioned<'_>,
    mut pruned: Versioned<'static>,
    managed: &Managed,
) -> Versioned<'static> {
    let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
    for fields in managed.fields.values() {
        let set = owned.entry(&fields.api_version).or_default();
        *set = set.union(&fields.set);
    }
    let mut owned: Vec<(&str, Set)> = owned.into_iter().collect();
    // Start with the pruned version: other versions may depend on the fields that it restores.
    let version = merged.kind.api_version();
    owned.sort_by_key(|(api_version, _)| *api_version != version);
    for (api_version, set) in owned {
        let (Some(all), Some(rest)) = (merged.convert(api_version), pruned.convert(api_version))
        else {
            continue;
        };
        let of = all.of();
        let named = |set: &Set| typed::with_named_fields(set, of);
        let kept = named(&typed::field_set(of, &rest.value)).union(&named(&set));
        let gone = named(&typed::field_set(of, &all.value)).difference(&kept);
        pruned = all.with(typed::remove(of, &all.value, &gone));
    }
    pruned
}
