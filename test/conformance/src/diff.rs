//! Differences between two JSON values.

use serde_json::{Map, Value};

/// Rule for the equality of two values.
pub trait Rule {
    /// Compares two values; the path ends with the name of their field. Not called for two objects
    /// or two lists of equal length, which are compared field by field.
    fn equal(&self, path: &str, expected: &Value, actual: &Value) -> bool;

    /// Returns true if fields of this name are ignored everywhere.
    fn ignores(&self, member: &str) -> bool;
}

/// Byte-exact comparison.
struct Exact;

impl Rule for Exact {
    fn equal(&self, _: &str, expected: &Value, actual: &Value) -> bool {
        expected == actual
    }

    fn ignores(&self, _: &str) -> bool {
        false
    }
}

/// Differences, one per line, with their paths.
pub fn diff(expected: &Value, actual: &Value) -> Vec<String> {
    diff_by(&Exact, expected, actual)
}

/// Differences by a rule, one per line, with their paths.
pub fn diff_by(rule: &dyn Rule, expected: &Value, actual: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    walk(rule, "", expected, actual, &mut lines);
    lines
}

fn walk(rule: &dyn Rule, path: &str, expected: &Value, actual: &Value, lines: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, a, b) in pairs(rule, a, b) {
                let path = format!("{path}.{name}");
                match (a, b) {
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
        (a, b) if rule.equal(path, a, b) => {}
        (a, b) => lines.push(format!("{path}: expected {a}, is {b}")),
    }
}

/// A field of one or both objects.
type Pair<'a> = (&'a String, Option<&'a Value>, Option<&'a Value>);

/// Pairs the fields of two objects by name. Names in only one of them are paired if the rule finds
/// them equal as texts: recordings may mask parts of names.
fn pairs<'a>(
    rule: &dyn Rule,
    expected: &'a Map<String, Value>,
    actual: &'a Map<String, Value>,
) -> Vec<Pair<'a>> {
    let counts = |(name, _): &(&String, &Value)| !rule.ignores(name);
    let mut left: Vec<(&String, &Value)> = actual.iter().filter(counts).collect();
    let mut pairs = Vec::with_capacity(left.len());
    for (name, a) in expected.iter().filter(counts) {
        let text = Value::from(name.as_str());
        let same = left.iter().position(|(other, _)| *other == name);
        let found = same.or_else(|| {
            left.iter().position(|(other, _)| {
                !expected.contains_key(*other)
                    && rule.equal("", &text, &Value::from(other.as_str()))
            })
        });
        let b = found.map(|index| left.remove(index).1);
        pairs.push((name, Some(a), b));
    }
    pairs.extend(left.into_iter().map(|(name, b)| (name, None, Some(b))));
    pairs.sort_by_key(|(name, ..)| *name);
    pairs
}
