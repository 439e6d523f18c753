//! The objects in a server's responses.

use kube_test_control_plane_api::kinds::{self, Kind, Trait, Verb};
use kube_test_control_plane_api::object::{Draft, Key, Object};
use serde_json::Value;

/// Reports whether a kind has stored objects that can be watched.
pub(super) fn is_followed(kind: &Kind) -> bool {
    let stored = !kind.has(Trait::View) && !kind.has(Trait::Virtual);
    stored && kind.allows(Verb::List) && kind.allows(Verb::Watch)
}

/// Returns the object in a response with its version; `None` unless its kind is known.
pub(super) fn made(answer: &Value) -> Option<(Key, u64)> {
    let text = |pointer: &str| answer.pointer(pointer)?.as_str();
    let kind = kinds::by_kind(text("/apiVersion")?, text("/kind")?)?;
    let version = text("/metadata/resourceVersion")?.parse().ok()?;
    let namespace = text("/metadata/namespace").unwrap_or_default();
    let key = Key::new(kind, namespace, text("/metadata/name")?);
    is_followed(kind).then_some((key, version))
}

/// Converts an object sent by a server; `None` if it lacks a name or version.
pub(super) fn object(kind: &Kind, mut value: Value) -> Option<Object> {
    // Items of a list omit both.
    value["kind"] = Value::from(&*kind.kind);
    value["apiVersion"] = Value::from(kind.api_version());
    let (key, version) = made(&value)?;
    let draft = Draft::from_value(kind, value);
    Some(Object::commit(kind, key, draft, version))
}
