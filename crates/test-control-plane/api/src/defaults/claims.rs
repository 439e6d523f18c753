//! The sources of claims, which have two fields.

use serde_json::{Map, Value};

use crate::members::text;

/// Drops sources that no storage driver could read, and copies each field to the other one.
///
/// Upstream: `DropDisabledFields`, `EnforceDataSourceBackwardsCompatibility`,
/// `NormalizeDataSources`.
pub(super) fn set_sources(claim: &mut Value, old: Option<&Value>) {
    let old = old.and_then(|old| old.get("spec"));
    let was_set = |member: &str| old.is_some_and(|old| old.get(member).is_some_and(is_set));
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let has_namespace = |spec: &Map<String, Value>| {
        let reference = spec.get("dataSourceRef");
        reference.is_some_and(|reference| !text(reference, "namespace").is_empty())
    };
    if has_namespace(spec) && !was_set("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    let has_reference = spec.get("dataSourceRef").is_some_and(is_set);
    let is_in_use = was_set("dataSource") || was_set("dataSourceRef");
    let is_known = spec.get("dataSource").is_some_and(is_claim_or_snapshot);
    if !is_in_use && !has_reference && !is_known {
        spec.remove("dataSource");
    }
    match ["dataSource", "dataSourceRef"].map(|member| spec.get(member).cloned().filter(is_set)) {
        [Some(source), None] => copy(spec, &source, "dataSourceRef"),
        [None, Some(reference)] if !has_namespace(spec) => copy(spec, &reference, "dataSource"),
        _ => {}
    }
}

fn is_set(value: &Value) -> bool {
    !value.is_null()
}

fn copy(spec: &mut Map<String, Value>, from: &Value, member: &str) {
    let mut parts = Map::new();
    for part in ["apiGroup", "kind", "name"] {
        // The group is always written.
        let value = from.get(part).cloned().unwrap_or_default();
        if part == "apiGroup" || !value.is_null() {
            parts.insert(part.to_owned(), value);
        }
    }
    spec.insert(member.to_owned(), Value::Object(parts));
}

fn is_claim_or_snapshot(source: &Value) -> bool {
    let pair = ["apiGroup", "kind"].map(|member| text(source, member));
    let known = [
        ["", "PersistentVolumeClaim"],
        ["snapshot.storage.k8s.io", "VolumeSnapshot"],
    ];
    known.contains(&pair)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sources(spec: &Value, old: Option<&Value>) -> Value {
        let mut claim = json!({"spec": spec});
        let old = old.map(|spec| json!({"spec": spec}));
        set_sources(&mut claim, old.as_ref());
        claim["spec"].take()
    }

    #[test]
    fn sources_have_both_fields() {
        let source = json!({"apiGroup": null, "kind": "PersistentVolumeClaim", "name": "a"});
        let both = json!({"dataSource": source, "dataSourceRef": source});
        assert_eq!(sources(&json!({"dataSource": source}), None), both);
        assert_eq!(sources(&json!({"dataSourceRef": source}), None), both);
        let other = json!({"apiGroup": null, "kind": "Pod", "name": "a"});
        assert_eq!(sources(&json!({"dataSource": other}), None), json!({}));
        let used = Some(json!({"dataSource": other}));
        let both = json!({"dataSource": other, "dataSourceRef": other});
        assert_eq!(sources(&json!({"dataSource": other}), used.as_ref()), both);
        let foreign = json!({"kind": "A", "name": "a", "namespace": "b"});
        assert_eq!(sources(&json!({"dataSourceRef": foreign}), None), json!({}));
    }
}
