//! Writes that are no applies: what they change becomes the writer's.
//!
//! Upstream: `FieldManager.Update` and the managers that it goes through.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::Writer;
use super::managers::{Managed, ManagerId, Operation};
use super::reset_fields::{Filter, without_nobodys};
use super::updater::Updater;
use super::versions::Versioned;
use super::zero::zero;

/// Who writes while it isn't clear yet whether anything changes.
const CURRENT_OPERATION: &str = "current-operation";

impl Writer<'_> {
    /// The `metadata.managedFields` after an object was created (from none) or updated; null if
    /// nobody manages it.
    ///
    /// `new` is the object as the client wants it, with the managers that the client sends; what
    /// the server then writes into it belongs to nobody.
    pub fn track(&self, live: Option<&Value>, new: &Value) -> Value {
        let managed = self.managed(live, new);
        if managed.fields.is_empty() && live.is_some() {
            // Somebody doesn't want the managers of this object to be tracked.
            return Value::Null;
        }
        let live = live.unwrap_or_else(|| zero(self.kind));
        self.update(live, new, managed, self.manager).encode()
    }

    /// The managers to begin with: those that the client sends, if they are valid, or else those of
    /// the stored object. An empty list, or one of a single empty entry, resets them.
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

    /// Gives what changed to the manager of this name.
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
            fields.set = without_nobodys(&fields.set);
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
            kind: self.kind,
        }
    }
}

/// The managers of an object as they stand in it.
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
