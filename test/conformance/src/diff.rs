//! What differs between two JSON values.

use serde_json::Value;

/// The differences, one a line, each with the path to it.
pub fn diff(expected: &Value, actual: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    walk("", expected, actual, &mut lines);
    lines
}

fn walk(path: &str, expected: &Value, actual: &Value, lines: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let path = format!("{path}.{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => walk(&path, a, b, lines),
                    (Some(a), None) => lines.push(format!("{path}: expected {a}, is missing")),
                    (None, Some(b)) => lines.push(format!("{path}: is {b}, expected nothing")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                walk(&format!("{path}[{index}]"), a, b, lines);
            }
        }
        (a, b) if a == b => {}
        (a, b) => lines.push(format!("{path}: expected {a}, is {b}")),
    }
}
