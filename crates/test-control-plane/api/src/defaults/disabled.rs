//! Fields of disabled feature gates as data, see `disabled.txt`.
//!
//! They are dropped without notice, unless the stored object uses them.

use serde_json::{Map, Value};

use crate::kinds::Kind;

const FIELDS: &str = include_str!("disabled.txt");

/// Returns the paths of a block.
fn paths(block: &str) -> impl Iterator<Item = &'static str> {
    let lines = FIELDS.lines().skip_while(move |line| *line != block);
    let rows = lines.skip(1).map_while(|line| line.strip_prefix("  "));
    rows.collect::<Vec<_>>().into_iter()
}

/// Drops the fields of a kind, besides those of its pods.
pub(super) fn of_kind(kind: &Kind, new: &mut Value, old: Option<&Value>) {
    drop_all(&kind.kind, new, old);
}

/// Drops the fields of the spec of a pod.
pub(super) fn of_pod(new: &mut Value, old: Option<&Value>) {
    drop_all("PodSpec", new, old);
}

fn drop_all(block: &str, new: &mut Value, old: Option<&Value>) {
    for path in paths(block) {
        let steps: Vec<&str> = path.split('.').collect();
        if !old.is_some_and(|old| has(old, &steps)) {
            remove(new, &steps);
        }
    }
}

/// Returns the names of a step's fields, and whether they go if they become empty.
fn members(step: &str) -> (impl Iterator<Item = &str>, bool) {
    let names = step.trim_end_matches('?');
    (names.split('|'), names.len() < step.len())
}

fn has(value: &Value, path: &[&str]) -> bool {
    let Some((step, rest)) = path.split_first() else {
        return !value.is_null();
    };
    if let Value::Array(elements) = value {
        return elements.iter().any(|element| has(element, path));
    }
    if *step == "*" {
        let values = value.as_object().into_iter().flat_map(Map::values);
        return values.into_iter().any(|value| has(value, rest));
    }
    let (mut names, _) = members(step);
    names.any(|name| value.get(name).is_some_and(|value| has(value, rest)))
}

/// Removes a field, and returns true if there was one.
fn remove(value: &mut Value, path: &[&str]) -> bool {
    let Some((step, rest)) = path.split_first() else {
        return false;
    };
    let Value::Object(object) = value else {
        let mut is_removed = false;
        for element in value.as_array_mut().into_iter().flatten() {
            is_removed |= remove(element, path);
        }
        return is_removed;
    };
    let mut is_removed = false;
    if *step == "*" {
        for value in object.values_mut() {
            is_removed |= remove(value, rest);
        }
        return is_removed;
    }
    let (names, goes) = members(step);
    for name in names {
        if rest.is_empty() {
            is_removed |= object.remove(name).is_some_and(|value| !value.is_null());
            continue;
        }
        let Some(inner) = object.get_mut(name) else {
            continue;
        };
        let is_changed = remove(inner, rest);
        is_removed |= is_changed;
        let is_empty = inner.as_object().is_some_and(Map::is_empty);
        if goes && is_changed && is_empty {
            object.remove(name);
        }
    }
    is_removed
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::schema::{Field, find_type};
    use serde_json::json;

    use super::*;

    #[test]
    fn every_line_names_a_field() {
        for block in ["PodSpec", "Pod", "ResourceSlice", "Lease"] {
            assert!(paths(block).next().is_some(), "{block}");
            for path in paths(block) {
                let mut of = find_type(block);
                for step in path.split('.').filter(|step| *step != "*") {
                    let found = of.unwrap_or_else(|| panic!("{path}: {step}"));
                    let (names, _) = members(step);
                    let fields: Vec<&Field> = names.filter_map(|name| found.field(name)).collect();
                    assert_eq!(fields.len(), members(step).0.count(), "{path}: {step}");
                    of = fields[0].object_type();
                }
            }
        }
    }

    #[test]
    fn used_fields_stay() {
        let signal = json!({"containers": [{"lifecycle": {"stopSignal": "SIGTERM"}}]});
        let mut new = signal.clone();
        of_pod(&mut new, Some(&signal));
        assert_eq!(new, signal);
        of_pod(&mut new, Some(&json!({"containers": [{}]})));
        assert_eq!(new, json!({"containers": [{}]}));
        let sources = json!([{"clusterTrustBundle": {}}, {"configMap": {}}]);
        let mut new = json!({"volumes": [{"projected": {"sources": sources}}]});
        of_pod(&mut new, None);
        let sources = json!([{}, {"configMap": {}}]);
        assert_eq!(
            new,
            json!({"volumes": [{"projected": {"sources": sources}}]})
        );
    }
}
