//! Ownership changes by writes other than apply.
//!
//! Upstream: `FieldManager.Update` and the managers that it goes through.

use std::borrow::Cow;
use std::sync::Arc;

use kube_apimachinery::schema::Version;
use serde_json::{Value, json};

use super::Writer;
use super::managers::{Managed, ManagerId, Operation};
use super::reset_fields::{Filter, without_system_fields};
use super::typed::{TypeRef, is_declared, is_typed};
use super::updater::Updater;
use super::versions::Versioned;
use crate::kinds::{Kind, zero};
use crate::members::at;

/// The temporary manager of a write, until it is clear whether anything changed.
const CURRENT_OPERATION: &str = "current-operation";

/// Returns an object's `metadata.managedFields`.
pub(super) fn managed_fields(object: Option<&Value>) -> Option<&Value> {
    at(object?, "/metadata/managedFields")
}

/// Returns the `metadata.managedFields` after a create (`live` is `None`) or an update; null if
/// the object has no managers.
///
/// `new` is the client's object, including the managers that it sends. Later changes by the
/// server get no owner.
pub fn track(writer: &Writer<'_>, live: Option<&Value>, new: &Value) -> Value {
    let managed = managed(writer, live, new);
    if managed.fields.is_empty() && live.is_some() {
        // A client has switched tracking off for this object.
        return Value::Null;
    }
    let live = live.unwrap_or_else(|| zero(writer.kind));
    if !is_trackable(writer.kind, new) || !is_trackable(writer.kind, live) {
        // Upstream can't compare the objects and drops their managers.
        return Value::Null;
    }
    if !has_known_fields(writer, &managed, live) || !has_known_fields(writer, &managed, new) {
        return Value::Null;
    }
    update(writer, live, new, managed, writer.manager).encode()
}

/// Reports whether the values in an object have the types of their fields, and the elements of keyed
/// lists a key. Only a custom resource may have others, where its validation ignores them, and a service
/// account, whose secrets may lack a name.
pub fn is_trackable(kind: &Arc<Kind>, object: &Value) -> bool {
    let is_checked = kind.custom.is_some() || &*kind.storage == "serviceaccounts";
    !is_checked || is_typed(TypeRef::in_version(kind, Version::NEWEST), object)
}

/// Reports whether all versions of the managers have the fields of a custom resource.
fn has_known_fields(writer: &Writer<'_>, managed: &Managed, object: &Value) -> bool {
    let custom = writer.kind.custom.is_some();
    let object = versioned(writer, object);
    managed.fields.values().filter(|_| custom).all(|fields| {
        let converted = object.convert(&fields.api_version);
        converted.is_none_or(|converted| is_declared(converted.of(), &converted.value))
    })
}

/// Returns the initial managers: the client's, if they are valid, else the stored ones. An
/// empty list, or one with a single empty entry, resets them.
fn managed(writer: &Writer<'_>, live: Option<&Value>, new: &Value) -> Managed {
    let live = managed_fields(live);
    let sent = managed_fields(Some(new));
    if writer.subresource.is_empty() {
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
    writer: &Writer<'_>,
    live: &Value,
    new: &Value,
    managed: Managed,
    manager: &str,
) -> Managed {
    let api_version = writer.kind.api_version();
    let filter = Filter::of(writer.kind, writer.subresource);
    let updater = Updater {
        api_version: &api_version,
        filter: &filter,
    };
    let (live, new) = (versioned(writer, live), versioned(writer, new));
    let current = ManagerId::new(Operation::Update, CURRENT_OPERATION, "", "");
    let mut managed = updater.update(&live, &new, managed, &current);
    if let Some(mut fields) = managed.fields.remove(&current) {
        fields.set = without_system_fields(&fields.set);
        if !fields.set.is_empty() {
            let id = ManagerId::new(Operation::Update, manager, &api_version, writer.subresource);
            if let Some(before) = managed.fields.remove(&id) {
                fields.set = fields.set.union(&before.set);
            }
            managed.times.insert(id.clone(), writer.now.to_owned());
            managed.fields.insert(id, fields);
        }
    }
    managed.cap();
    managed
}

pub(super) fn versioned<'v>(writer: &Writer<'_>, value: &'v Value) -> Versioned<'v> {
    Versioned {
        value: Cow::Borrowed(value),
        kind: Arc::clone(writer.kind),
    }
}

fn is_reset(sent: Option<&Value>) -> bool {
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => *entry == json!({}),
        _ => false,
    }
}
