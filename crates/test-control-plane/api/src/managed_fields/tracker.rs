//! Ownership changes by writes other than apply.
//!
//! Upstream: `FieldManager.Update` and the managers that it goes through.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Writer;
use super::managers::{Managed, ManagerId, Operation};
use super::reset_fields::{Filter, without_system_fields};
use super::updater::Updater;
use super::versions::Versioned;
use crate::kinds::zero;

/// The temporary manager of a write, until it is clear whether anything changed.
const CURRENT_OPERATION: &str = "current-operation";

impl Writer<'_> {
    /// Returns the `metadata.managedFields` after a create (`live` is `None`) or an update; null if
    /// the object has no managers.
    ///
    /// `new` is the client's object, including the managers that it sends. Later changes by the
    /// server get no owner.
    pub fn track(&self, live: Option<&Value>, new: &Value) -> Value {
        let managed = self.managed(live, new);
        if managed.fields.is_empty() && live.is_some() {
            // A client has switched tracking off for this object.
            return Value::Null;
        }
        let live = live.unwrap_or_else(|| zero(self.kind));
        self.update(live, new, managed, self.manager).encode()
    }

    /// Returns the initial managers: the client's, if they are valid, else the stored ones. An
    /// empty list, or one with a single empty entry, resets them.
    fn managed(&self, live: Option<&Value>, new: &Value) -> Managed {
        let live = managed_fields(live);
        let sent = managed_fields(Some(new));
        if self.subresource.is_empty() {
            if is_reset(sent) {
                return Managed::default();
            }
            if let Ok(managed) = Managed::decode(sent)
                && !managed.fields.is_empty()
            {
                return managed;
            }
        }
        Managed::decode(live).unwrap_or_default()
    }

    /// Gives the changed fields to the manager of this name.
    pub(super) fn update(
        &self,
        live: &Value,
        new: &Value,
        managed: Managed,
        manager: &str,
    ) -> Managed {
        let api_version = self.kind.api_version();
        let filter = Filter::of(self.kind, self.subresource);
        let updater = Updater {
            api_version: &api_version,
            filter: &filter,
        };
        let (live, new) = (self.versioned(live), self.versioned(new));
        let current = ManagerId::new(Operation::Update, CURRENT_OPERATION, "", "");
        let mut managed = updater.update(&live, &new, managed, &current);
        if let Some(mut fields) = managed.fields.remove(&current) {
            fields.set = without_system_fields(&fields.set);
            if !fields.set.is_empty() {
                let id = ManagerId::new(Operation::Update, manager, &api_version, self.subresource);
                if let Some(before) = managed.fields.remove(&id) {
                    fields.set = fields.set.union(&before.set);
                }
                managed.times.insert(id.clone(), self.now.to_owned());
                managed.fields.insert(id, fields);
            }
        }
        managed.cap();
        managed
    }

    pub(super) fn versioned<'v>(&self, value: &'v Value) -> Versioned<'v> {
        Versioned {
            value: Cow::Borrowed(value),
            kind: Arc::clone(self.kind),
        }
    }
}

/// Returns an object's `metadata.managedFields`.
pub(super) fn managed_fields(object: Option<&Value>) -> Option<&Value> {
    object?.pointer("/metadata/managedFields")
}

fn is_reset(sent: Option<&Value>) -> bool {
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => *entry == json!({}),
        _ => false,
    }
}
