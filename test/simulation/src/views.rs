//! Objects as the judges read them: parsed here, not by the code under test.

mod claim;
mod condition;
mod owner;
mod pod;
mod revision;
mod set;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::world::NEW_MEMBER;

pub use claim::{Claim, is_named_as};
pub use condition::Condition;
pub use owner::Owner;
pub use pod::Pod;
pub use revision::Revision;
pub use set::{Set, Status};

/// Reads text at a JSON pointer; empty if there is none.
fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

/// Reads a number at a JSON pointer; 0 if there is none.
fn number(value: &Value, pointer: &str) -> i64 {
    let found = value.pointer(pointer).and_then(Value::as_i64);
    found.unwrap_or_default()
}

/// Reads a list of texts at a JSON pointer.
fn texts(value: &Value, pointer: &str) -> Vec<String> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Reads a map of texts at a JSON pointer.
fn map(value: &Value, pointer: &str) -> BTreeMap<String, String> {
    let map = value.pointer(pointer).and_then(Value::as_object);
    let entries = map.into_iter().flatten();
    let texts = entries.filter_map(|(key, it)| Some((key.clone(), it.as_str()?.to_owned())));
    texts.collect()
}

/// Reports whether an object is being deleted.
fn is_terminating(value: &Value) -> bool {
    value.pointer("/metadata/deletionTimestamp").is_some()
}

/// Reads the owner references of an object.
fn owners(value: &Value) -> Vec<Owner> {
    let owners = value.pointer("/metadata/ownerReferences");
    let owners = owners.and_then(Value::as_array).into_iter().flatten();
    owners
        .map(|owner| Owner {
            kind: text(owner, "/kind"),
            name: text(owner, "/name"),
            uid: text(owner, "/uid"),
            controller: owner.pointer("/controller") == Some(&Value::Bool(true)),
        })
        .collect()
}

/// Returns a pod template without what restarts nothing: a field that only a newer API server
/// knows, and the creation time that older controllers recorded.
fn known_template(mut template: Value) -> Value {
    if let Some(spec) = template.pointer_mut("/spec").and_then(Value::as_object_mut) {
        spec.remove(NEW_MEMBER);
    }
    let metadata = template.pointer_mut("/metadata");
    if let Some(metadata) = metadata.and_then(Value::as_object_mut)
        && metadata.get("creationTimestamp") == Some(&Value::Null)
    {
        metadata.remove("creationTimestamp");
    }
    template
}

/// Returns the controlling owner.
fn controller(value: &Value) -> Option<Owner> {
    owners(value).into_iter().find(|owner| owner.controller)
}
