//! What differs between two JSON values.

use serde_json::Value;

/// When two values count as alike.
pub trait Rule {
    /// Whether two values that are neither two objects nor two lists of one length are alike.
    fn alike(&self, expected: &Value, actual: &Value) -> bool;

    /// Whether a member of that name is left out wherever it stands.
    fn leaves_out(&self, member: &str) -> bool;
}

/// Everything counts, to the byte.
struct Exact;

impl Rule for Exact {
    fn alike(&self, expected: &Value, actual: &Value) -> bool {
        expected == actual
    }

    fn leaves_out(&self, _: &str) -> bool {
        false
    }
}

/// The differences, one a line, each with the path to it.
pub fn diff(expected: &Value, actual: &Value) -> Vec<String> {
    diff_by(&Exact, expected, actual)
}

/// The differences by a rule, one a line, each with the path to it.
pub fn diff_by(rule: &dyn Rule, expected: &Value, actual: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    walk(rule, "", expected, actual, &mut lines);
    lines
}

fn walk(rule: &dyn Rule, path: &str, expected: &Value, actual: &Value, lines: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names.into_iter().filter(|name| !rule.leaves_out(name)) {
                let path = format!("{path}.{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => walk(rule, &path, a, b, lines),
                    (Some(a), None) => lines.push(format!("{path}: expected {a}, is missing")),
                    (None, Some(b)) => lines.push(format!("{path}: is {b}, expected nothing")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                walk(rule, &format!("{path}[{index}]"), a, b, lines);
            }
        }
        (a, b) if rule.alike(a, b) => {}
        (a, b) => lines.push(format!("{path}: expected {a}, is {b}")),
    }
}
