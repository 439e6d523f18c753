//! Events: stored in the core/v1 form, and served in that of events.k8s.io/v1 as well.

use serde_json::{Map, Value, json};

use crate::kinds::{Kind, Trait};

/// Members with their core/v1 and events.k8s.io names.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Converts the stored form to the form that `kind` serves.
pub fn to_served(kind: &Kind, value: &mut Value) {
    let Some(map) = value.as_object_mut().filter(|_| is_view(kind)) else {
        return;
    };
    for (stored, served) in RENAMED {
        rename(map, stored, served);
    }
    for member in ["reportingController", "reportingInstance"] {
        if map.get(member) == Some(&json!("")) {
            map.remove(member);
        }
    }
    map.insert("apiVersion".to_owned(), json!(kind.api_version()));
}

/// Converts the form that `kind` serves to the stored form.
pub fn to_stored(kind: &Kind, value: &mut Value) {
    let Some(map) = value.as_object_mut().filter(|_| is_view(kind)) else {
        return;
    };
    for (stored, served) in RENAMED {
        rename(map, served, stored);
    }
    map.insert("apiVersion".to_owned(), json!("v1"));
}

/// Returns true for events of events.k8s.io/v1: they have the only built-in type with two forms.
fn is_view(kind: &Kind) -> bool {
    kind.has(Trait::View) && kind.custom.is_none()
}

fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = map.remove(from) {
        map.insert(to.to_owned(), value);
    }
}
