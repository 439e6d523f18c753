//! Built-in kinds with several versions, of which one is stored.

mod autoscalers;
mod events;

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::kinds::{Kind, Trait, by_storage};

/// Converts the stored form to the form that `kind` serves.
pub fn to_served(kind: &Kind, value: &mut Value) {
    let Some(map) = value.as_object_mut().filter(|_| is_view(kind)) else {
        return;
    };
    match &*kind.storage {
        "events" => events::to_served(map),
        _ => autoscalers::to_served(map),
    }
    map.insert("apiVersion".to_owned(), json!(kind.api_version()));
}

/// Converts the form that `kind` serves to the stored form.
pub fn to_stored(kind: &Kind, value: &mut Value) {
    let Some(map) = value.as_object_mut() else {
        return;
    };
    match &*kind.storage {
        "events" if is_view(kind) => events::to_stored(map),
        "horizontalpodautoscalers" if is_view(kind) => autoscalers::to_stored(map),
        "horizontalpodautoscalers" => return autoscalers::drop_annotations(map),
        _ => return,
    }
    if let Some(stored) = by_storage(&kind.storage) {
        map.insert("apiVersion".to_owned(), json!(stored.api_version()));
    }
}

/// Returns the stored form of an object that `kind` serves.
pub(crate) fn stored<'a>(kind: &Kind, served: &'a Value) -> Cow<'a, Value> {
    let mut stored = Cow::Borrowed(served);
    if is_view(kind) {
        to_stored(kind, stored.to_mut());
    }
    stored
}

/// Returns true for a version of a built-in kind that is not the stored one.
fn is_view(kind: &Kind) -> bool {
    kind.has(Trait::View) && kind.custom.is_none()
}
