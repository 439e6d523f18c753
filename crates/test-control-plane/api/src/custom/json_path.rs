//! The JSON paths of columns.
//!
//! Upstream: `k8s.io/client-go/util/jsonpath`, with missing keys allowed

mod compare;
mod parse;
mod unquote;

use std::borrow::Cow;

use serde_json::Value;

use self::parse::{Filter, Node, Slice};

/// A value that a path leads to: a part of the object or a literal.
type Found<'a> = Cow<'a, Value>;

/// Maximum number of values after a step: repeated steps over everything would find any number.
const FOUND_MAX: usize = 100_000;

/// The values after a step, and whether an error ended it.
struct Walked<'a> {
    found: Vec<Found<'a>>,
    failed: bool,
}

/// The path of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    /// The parts in braces; a column normally has one.
    parts: Vec<Vec<Node>>,
}

impl JsonPath {
    /// Reads the path of a column, which has no braces around it; `None` if it can't be read.
    pub(crate) fn read(path: &str) -> Option<Self> {
        let parts = parse::template(&format!("{{{path}}}"))?;
        Some(Self { parts })
    }

    /// Returns the first value that the path leads to; `None` without one, and after an error.
    pub(crate) fn first<'a>(&self, object: &'a Value) -> Option<Found<'a>> {
        let walked = self.parts.iter().map(|part| {
            let begin = vec![Cow::Borrowed(object)];
            list(part, begin)
        });
        let walked: Vec<Walked<'a>> = walked.collect();
        if walked.iter().any(|walked| walked.failed) {
            return None;
        }
        walked.into_iter().next()?.found.into_iter().next()
    }
}

fn list<'a>(nodes: &[Node], begin: Vec<Found<'a>>) -> Walked<'a> {
    let mut walked = Walked {
        found: begin,
        failed: false,
    };
    for node in nodes {
        walked = walk(node, walked.found);
        walked.failed |= walked.found.len() > FOUND_MAX;
        if walked.failed {
            break;
        }
    }
    walked
}

fn walk<'a>(node: &Node, input: Vec<Found<'a>>) -> Walked<'a> {
    let found = match node {
        Node::Text(text) => vec![Cow::Owned(Value::from(text.as_str()))],
        Node::Literal(value) => {
            let each = input.iter().map(|_| Cow::Owned(value.clone()));
            each.collect()
        }
        Node::Field(name) => input
            .into_iter()
            .filter_map(|value| member(value, name))
            .collect(),
        Node::Wildcard => input
            .into_iter()
            .flat_map(inner)
            .take(FOUND_MAX + 1)
            .collect(),
        Node::Recursive => recursive(input),
        Node::Slice(of) => return slice(*of, input),
        Node::Filter(filter) => return filtered(filter, input),
        Node::Union(paths) => {
            let mut found = Vec::new();
            for path in paths {
                let walked = list(path, input.clone());
                if walked.failed {
                    return Walked {
                        found: input,
                        failed: true,
                    };
                }
                found.extend(walked.found);
            }
            found
        }
        Node::Unknown => {
            return Walked {
                found: input,
                failed: true,
            };
        }
    };
    Walked {
        found,
        failed: false,
    }
}

fn member<'a>(value: Found<'a>, name: &str) -> Option<Found<'a>> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(name).cloned().map(Cow::Owned),
    }
}

/// Returns the fields of an object, the elements of a list, or the bytes of a text.
fn inner(value: Found<'_>) -> Vec<Found<'_>> {
    match value {
        Cow::Borrowed(Value::Object(members)) => members.values().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Object(members)) => members.into_values().map(Cow::Owned).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        other => {
            let bytes = other.as_str().unwrap_or_default().bytes();
            bytes.map(|byte| Cow::Owned(Value::from(byte))).collect()
        }
    }
}

/// Returns all values that have others in them, each before those.
fn recursive(input: Vec<Found<'_>>) -> Vec<Found<'_>> {
    let mut found = Vec::new();
    let mut left: Vec<Found<'_>> = input.into_iter().rev().collect();
    while let Some(value) = left.pop() {
        if found.len() > FOUND_MAX {
            break;
        }
        let inner = inner(value.clone());
        if !inner.is_empty() {
            found.push(value);
            left.extend(inner.into_iter().rev());
        }
    }
    found
}

/// Upstream: `evalArray`
fn slice(of: Slice, input: Vec<Found<'_>>) -> Walked<'_> {
    let mut found = Vec::new();
    for value in &input {
        if value.is_null() {
            continue;
        }
        let Some(items) = value.as_array() else {
            return Walked {
                found: input,
                failed: true,
            };
        };
        let range = match of.range(items.len()) {
            Ok(Some(range)) => range,
            Ok(None) => break,
            Err(()) => {
                return Walked {
                    found: input,
                    failed: true,
                };
            }
        };
        let items = inner(value.clone());
        let items = items.into_iter().skip(range.begin).take(range.count);
        found.extend(items.step_by(range.step));
    }
    Walked {
        found,
        failed: false,
    }
}

/// Upstream: `evalFilter`
fn filtered<'a>(filter: &Filter, input: Vec<Found<'a>>) -> Walked<'a> {
    let mut found = Vec::new();
    for value in &input {
        if !value.is_array() {
            return Walked {
                found: input,
                failed: true,
            };
        }
        for item in inner(value.clone()) {
            let left = list(&filter.left, vec![item.clone()]);
            let Some((operator, right)) = &filter.compared else {
                // A failed path leads to the values before its failure.
                if !left.found.is_empty() {
                    found.push(item);
                }
                continue;
            };
            let sides =
                one(left).and_then(|left| Ok((left, one(list(right, vec![item.clone()]))?)));
            let is_kept = match sides {
                Ok((Some(left), Some(right))) => operator.holds(&left, &right),
                Ok(_) => Some(false),
                Err(()) => {
                    return Walked {
                        found: input,
                        failed: true,
                    };
                }
            };
            match is_kept {
                Some(true) => found.push(item),
                Some(false) => {}
                None => {
                    return Walked {
                        found,
                        failed: true,
                    };
                }
            }
        }
    }
    Walked {
        found,
        failed: false,
    }
}

/// Returns the value of a side of a comparison; `None` if it has none, an error if it has several.
fn one(walked: Walked<'_>) -> Result<Option<Found<'_>>, ()> {
    let mut found = walked.found.into_iter();
    match (walked.failed, found.next(), found.next()) {
        (false, one, None) => Ok(one),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(object: &Value, path: &str) -> Value {
        let path = JsonPath::read(path).unwrap();
        let found = path.first(object);
        found.map_or(json!("none"), Cow::into_owned)
    }

    #[test]
    fn paths_lead_to_their_first_value() {
        let object = json!({"spec": {
            "a.b": 1, "a": {"b": 2}, "none": null, "text": "hi", "empty": [],
            "l": [{"t": "x", "v": 1}, {"t": "y", "v": 2}, {"t": "z", "v": 3, "w": 0}],
        }});
        for (path, wanted) in [
            (".spec.l[0].v", json!(1)),
            (".spec.l[-1].v", json!(3)),
            (".spec.l[*].v", json!(1)),
            (".spec.l[1:].v", json!(2)),
            (".spec.l[:-1].t", json!("x")),
            (".spec.l[1:3:2].t", json!("y")),
            (".spec.l[2,0].t", json!("z")),
            (".spec.l[9].v", json!("none")),
            (".spec.l[9223372036854775807].v", json!("none")),
            (".spec['a.b']", json!(2)),
            (".spec['a\\.b']", json!(1)),
            (".spec.a\\.b", json!(1)),
            (".spec.none", json!(null)),
            (".spec.none.deep", json!("none")),
            (".spec.text[0]", json!("none")),
            (".spec.empty[*]", json!("none")),
            (".spec.text.*", json!(104)),
            ("..v", json!(1)),
            (".spec.text} text {.x", json!("hi")),
            (".spec.nothing.x", json!("none")),
        ] {
            assert_eq!(first(&object, path), wanted, "{path}");
        }
    }

    #[test]
    fn steps_over_everything_end() {
        let mut deep = json!("x");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let path = "..[*]".repeat(20);
        assert_eq!(first(&deep, &path), json!("none"));
    }

    #[test]
    fn filters_compare_values_of_one_type() {
        let object = json!({"l": [
            {"t": "x", "v": 1, "f": 1.5, "b": true, "o": {"k": 1}},
            {"t": "y", "v": 2, "f": 2.5, "b": false},
            {"t": "z", "v": 3, "n": null},
        ]});
        for (filter, wanted) in [
            ("@.t==\"y\"", json!("y")),
            ("@.t=='z'", json!("z")),
            ("@.t!=\"x\"", json!("y")),
            ("@.v>1", json!("y")),
            ("@.v>=3", json!("z")),
            ("@.v<2", json!("x")),
            ("@.v <= 1", json!("x")),
            ("@.f>1.5", json!("y")),
            ("@.b==false", json!("y")),
            ("@.b!=@.b", json!("none")),
            ("@.t>'x'", json!("y")),
            ("@.n", json!("z")),
            ("@.o.k", json!("x")),
            ("@.t[0]", json!("x")),
            ("@.v==\"1\"", json!("none")),
            ("@.v==1.0", json!("none")),
            ("@.b<true", json!("none")),
            ("@.n==1", json!("none")),
            ("@.t=<'x'", json!("none")),
            ("@.t=='\\u0078'", json!("x")),
        ] {
            let path = format!(".l[?({filter})].t");
            assert_eq!(first(&object, &path), wanted, "{path}");
        }
    }

    #[test]
    fn broken_paths_cannot_be_read() {
        for path in [
            ".a[",
            ".a[x]",
            ".a[?(@.b]",
            ".a[?(@.b==)]",
            ".a[?(==1)]",
            ".a['b",
            ".a....b",
            ".a \"b",
        ] {
            assert!(JsonPath::read(path).is_none(), "{path}");
        }
    }
}
