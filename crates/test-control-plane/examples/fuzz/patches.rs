//! Patches of all types for existing objects.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

use crate::mutate;

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Returns a patch of an object: its content type and its body.
pub(crate) fn patch(random: &mut StdRng, object: &Value) -> (&'static str, Value) {
    match random.random_range(0..5) {
        0 => (MERGE, part(random, object)),
        1 | 2 => {
            let mut patch = part(random, object);
            direct(random, &mut patch);
            (STRATEGIC, patch)
        }
        3 => {
            let operations = random.random_range(0..4);
            let operation = |_| operation(random, object);
            (JSON, (0..operations).map(operation).collect())
        }
        _ => {
            let mut patch = part(random, object);
            if let Some(members) = patch.as_object_mut() {
                for member in ["apiVersion", "kind"] {
                    members.insert(member.to_owned(), object[member].clone());
                }
            }
            let metadata = patch.get_mut("metadata").and_then(Value::as_object_mut);
            if let Some(metadata) = metadata
                && random.random_ratio(9, 10)
            {
                metadata.remove("managedFields");
                metadata.remove("resourceVersion");
            }
            (APPLY, patch)
        }
    }
}

/// Returns some fields of an object, some of them changed.
fn part(random: &mut StdRng, object: &Value) -> Value {
    let mut part = match object {
        Value::Object(members) => {
            let mut some = Map::new();
            for (name, value) in members {
                if random.random_ratio(1, 2) {
                    some.insert(name.clone(), part_of(random, value));
                }
            }
            Value::Object(some)
        }
        other => other.clone(),
    };
    if random.random_ratio(2, 3) {
        let donor = mutate::odd_value(random);
        mutate::value(random, &mut part, &donor);
    }
    if part.is_object() || random.random_ratio(1, 20) {
        part
    } else {
        json!({"spec": part})
    }
}

fn part_of(random: &mut StdRng, value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|_| random.random_ratio(2, 3))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        other => other.clone(),
    }
}

/// Adds directives to a strategic patch.
fn direct(random: &mut StdRng, patch: &mut Value) {
    match patch {
        Value::Object(members) => {
            for value in members.values_mut() {
                direct(random, value);
            }
            let names: Vec<String> = members.keys().cloned().collect();
            let name = names.choose(random).cloned().unwrap_or_default();
            let (directive, value) = match random.random_range(0..24) {
                0 => ("$patch".to_owned(), json!(word(random))),
                1 => (
                    "$retainKeys".to_owned(),
                    json!([name, mutate::odd_value(random)]),
                ),
                2 => (
                    format!("$setElementOrder/{name}"),
                    order(random, members.get(&name)),
                ),
                3 => {
                    let values = order(random, members.get(&name));
                    (format!("$deleteFromPrimitiveList/{name}"), values)
                }
                4 => ("$retainKeys".to_owned(), mutate::odd_value(random)),
                _ => return,
            };
            members.insert(directive, value);
        }
        Value::Array(elements) => {
            for element in elements.iter_mut() {
                direct(random, element);
            }
            if random.random_ratio(1, 20) {
                elements.push(json!({"$patch": word(random)}));
            }
        }
        _ => {}
    }
}

fn word(random: &mut StdRng) -> &'static str {
    let words = ["replace", "delete", "merge", "other", ""];
    words.choose(random).copied().unwrap_or_default()
}

/// Returns the elements of a list in another order, or another value.
fn order(random: &mut StdRng, list: Option<&Value>) -> Value {
    match list.and_then(Value::as_array) {
        Some(list) if random.random_ratio(4, 5) => list.iter().rev().cloned().collect(),
        _ => mutate::odd_value(random),
    }
}

fn operation(random: &mut StdRng, object: &Value) -> Value {
    let operations = ["add", "remove", "replace", "move", "copy", "test", "other"];
    let mut operation = json!({
        "op": operations.choose(random),
        "path": pointer(random, object),
        "from": pointer(random, object),
        "value": mutate::odd_value(random),
    });
    if random.random_ratio(1, 6) {
        let donor = mutate::odd_value(random);
        mutate::value(random, &mut operation, &donor);
    }
    operation
}

fn pointer(random: &mut StdRng, object: &Value) -> String {
    let mut pointer = String::new();
    let mut at = object;
    while random.random_ratio(5, 6) {
        let (step, next) = match at {
            Value::Object(members) if !members.is_empty() => {
                let index = random.random_range(0..members.len());
                let Some((name, value)) = members.iter().nth(index) else {
                    break;
                };
                (name.replace('~', "~0").replace('/', "~1"), value)
            }
            Value::Array(elements) if !elements.is_empty() => {
                let index = random.random_range(0..elements.len());
                (index.to_string(), &elements[index])
            }
            _ => break,
        };
        pointer = format!("{pointer}/{step}");
        at = next;
    }
    if random.random_ratio(1, 5) {
        pointer = format!("{pointer}/{}", mutate::text(random));
    }
    pointer
}
