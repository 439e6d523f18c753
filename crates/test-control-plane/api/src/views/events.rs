//! Events: stored in the core/v1 form, and served in that of events.k8s.io/v1 as well.

use serde_json::{Map, Value, json};

/// Fields with their core/v1 and events.k8s.io names.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Converts the core/v1 form to that of events.k8s.io/v1.
pub(super) fn to_served(event: &mut Map<String, Value>) {
    for (stored, served) in RENAMED {
        rename(event, stored, served);
    }
    for member in ["reportingController", "reportingInstance"] {
        if event.get(member) == Some(&json!("")) {
            event.remove(member);
        }
    }
}

/// Converts the form of events.k8s.io/v1 to that of core/v1.
pub(super) fn to_stored(event: &mut Map<String, Value>) {
    for (stored, served) in RENAMED {
        rename(event, served, stored);
    }
}

fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = map.remove(from) {
        map.insert(to.to_owned(), value);
    }
}
