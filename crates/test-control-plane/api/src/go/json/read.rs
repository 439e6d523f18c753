//! Decoding of JSON text into upstream's types: invalid UTF-8, lone surrogates, numbers of any
//! size, repeated members.
//!
//! Upstream: `json.Unmarshal`; `normalize` checks the types.

use kube_apimachinery::schema::{Field, Kind, Shape, Type};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::cursor::Cursor;
use super::{held, syntax_error};

/// Values of unknown type are dropped below this depth, so that recursive code needs only a small
/// stack.
const DEPTH_MAX: usize = 100;

/// The expected type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect {
    /// An object of this type.
    Object(&'static Type),
    /// A list of values of this kind.
    List(Kind),
    /// A map to values of this kind.
    Map(Kind),
    /// An object of this type or another value, which Go decodes by hand.
    Either(&'static Type),
    /// A value that isn't decoded further.
    One(Kind),
    /// Any JSON, which Go keeps as it is.
    Json,
    /// An unknown type.
    Anything,
}

impl Expect {
    /// Returns the expectation for a kind.
    pub(crate) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Struct(of) => of.find().map_or(Self::Anything, Self::Object),
            Kind::Either(of, _) => of.find().map_or(Self::Anything, Self::Either),
            Kind::Json => Self::Json,
            other => Self::One(other),
        }
    }

    /// Returns the expectation for a member.
    pub(crate) fn in_field(field: &Field) -> Self {
        match field.shape {
            Shape::Plain | Shape::Pointer => Self::of(field.kind),
            Shape::List => Self::List(field.kind),
            Shape::Map => Self::Map(field.kind),
        }
    }

    /// Returns the expectation after a step of a JSON pointer.
    pub(crate) fn step(self, name: &str) -> Self {
        match self {
            Self::Object(found) | Self::Either(found) => {
                found.field(name).map_or(Self::Anything, Self::in_field)
            }
            Self::List(kind) | Self::Map(kind) => Self::of(kind),
            Self::One(_) | Self::Json | Self::Anything => Self::Anything,
        }
    }
}

/// The handling of repeated members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DuplicateMembers {
    /// The second is decoded over the first, as into a Go struct.
    Merge,
    /// The second replaces the first, as in a Go map. Lists, which a patch applies unchanged, still
    /// merge.
    Replace,
}

/// Decodes a text.
///
/// # Errors
///
/// Go's message for invalid JSON.
pub(crate) fn read(
    text: &[u8],
    expect: Expect,
    duplicates: DuplicateMembers,
) -> Result<Value, String> {
    if let Some(why) = syntax_error(text) {
        return Err(why);
    }
    Ok(read_checked(text, expect, duplicates, Scope::Root))
}

/// The part of an object that a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The whole object.
    Root,
    /// The object's own metadata or a part of it.
    Metadata,
    /// Any other part.
    Inside,
}

/// Decodes a text with checked syntax.
pub(crate) fn read_checked(
    text: &[u8],
    expect: Expect,
    duplicates: DuplicateMembers,
    scope: Scope,
) -> Value {
    let mut reader = Reader::new(text, duplicates);
    reader.value(expect, scope, 0).unwrap_or(Value::Null)
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    duplicates: DuplicateMembers,
    /// Whether values of a wrong type keep their content, which errors about a patch show. Those about a
    /// body need only its type.
    keeps_content: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8], duplicates: DuplicateMembers) -> Self {
        Self {
            cursor: Cursor::new(text),
            duplicates,
            keeps_content: duplicates == DuplicateMembers::Replace,
        }
    }
}

impl Reader<'_> {
    /// Decodes a value; `None` if its type is unknown and it is nested too deeply.
    fn value(&mut self, expect: Expect, scope: Scope, depth: usize) -> Option<Value> {
        if let Expect::One(Kind::Raw) = expect {
            let raw = self.cursor.raw();
            return Some(held::read(raw, scope == Scope::Metadata));
        }
        match self.cursor.peek() {
            b'{' => self.object(expect, scope, depth),
            b'[' => self.list(expect, scope, depth),
            b'"' => Some(Value::String(self.cursor.string())),
            _ => Some(scalar(expect, self.cursor.raw())),
        }
    }

    fn object(&mut self, expect: Expect, scope: Scope, depth: usize) -> Option<Value> {
        let expect = match expect {
            Expect::List(_) | Expect::One(_) if self.keeps_content => Expect::Anything,
            Expect::List(_) | Expect::One(_) => {
                self.cursor.raw();
                return Some(Value::Object(Map::new()));
            }
            expect => expect,
        };
        if depth > DEPTH_MAX {
            self.cursor.raw();
            return None;
        }
        let mut members = Map::new();
        let mut more = self.cursor.open(b'{', b'}');
        while more {
            let name = self.cursor.name();
            let inner = match (scope, &*name) {
                (Scope::Root, "metadata") | (Scope::Metadata, _) => Scope::Metadata,
                _ => Scope::Inside,
            };
            let field = match expect {
                Expect::Object(found) | Expect::Either(found) => found.field(&name),
                _ => None,
            };
            let value = self.value(expect.step(&name), inner, depth + 1);
            if let Some(value) = value {
                match (members.entry(name), field) {
                    (Entry::Vacant(free), _) => drop(free.insert(value)),
                    (Entry::Occupied(mut first), Some(field))
                        if self.duplicates == DuplicateMembers::Merge =>
                    {
                        let before = first.get_mut().take();
                        first.insert(merged(field, before, value));
                    }
                    (Entry::Occupied(mut first), _) => drop(first.insert(value)),
                }
            }
            more = self.cursor.next(b'}');
        }
        Some(Value::Object(members))
    }

    fn list(&mut self, expect: Expect, scope: Scope, depth: usize) -> Option<Value> {
        let element = match expect {
            Expect::List(kind) => Expect::of(kind),
            Expect::Either(of) => Expect::Object(of),
            Expect::Json | Expect::Anything => Expect::Anything,
            Expect::One(Kind::Strings) => Expect::One(Kind::String("string")),
            _ if self.keeps_content => Expect::Anything,
            Expect::Object(_) | Expect::Map(_) | Expect::One(_) => {
                self.cursor.raw();
                return Some(Value::Array(Vec::new()));
            }
        };
        if depth > DEPTH_MAX {
            self.cursor.raw();
            return None;
        }
        let duplicates = std::mem::replace(&mut self.duplicates, DuplicateMembers::Merge);
        let mut elements = Vec::new();
        let mut more = self.cursor.open(b'[', b']');
        while more {
            elements.push(self.value(element, scope, depth + 1).unwrap_or(Value::Null));
            more = self.cursor.next(b']');
        }
        self.duplicates = duplicates;
        Some(Value::Array(elements))
    }
}

fn scalar(expect: Expect, raw: &[u8]) -> Value {
    match raw {
        b"null" | b"" => return Value::Null,
        b"true" => return Value::Bool(true),
        b"false" => return Value::Bool(false),
        _ => {}
    }
    let text = String::from_utf8_lossy(raw);
    match expect {
        // Keep the digits of a quantity as sent.
        Expect::One(Kind::Quantity) => Value::String(text.into_owned()),
        Expect::One(Kind::Int32 | Kind::Int64 | Kind::IntOrString) if text == "-0" => {
            Value::from(0)
        }
        _ => Value::Number(number(&text)),
    }
}

/// Decodes a number. One that overflows a double becomes the largest double, which no integer type
/// accepts.
fn number(text: &str) -> Number {
    if let Ok(number) = serde_json::from_str(text) {
        return number;
    }
    let largest = if text.starts_with('-') {
        f64::MIN
    } else {
        f64::MAX
    };
    Number::from_f64(largest).unwrap_or_else(|| Number::from(0))
}

/// Returns Go's result of decoding `second` over `first`.
fn merged(field: &Field, first: Value, second: Value) -> Value {
    let is_plain = field.shape == Shape::Plain;
    match (field.shape, first, second) {
        (Shape::Plain | Shape::Pointer, first, second) => {
            merged_value(field.kind, first, second, is_plain)
        }
        (Shape::Map, Value::Object(mut first), Value::Object(second)) => {
            first.extend(second);
            Value::Object(first)
        }
        (Shape::List, Value::Array(first), Value::Array(second)) => {
            let mut first = first.into_iter();
            let over = |second| match first.next() {
                Some(first) => merged_value(field.kind, first, second, true),
                None => second,
            };
            Value::Array(second.into_iter().map(over).collect())
        }
        (_, _, second) => second,
    }
}

fn merged_value(kind: Kind, first: Value, second: Value, is_plain: bool) -> Value {
    match (kind, first, second) {
        (Kind::Struct(of), Value::Object(mut first), Value::Object(second)) => {
            for (name, value) in second {
                let field = of.find().and_then(|found| found.field(&name));
                let value = match (first.remove(&name), field) {
                    (Some(before), Some(field)) => merged(field, before, value),
                    _ => value,
                };
                first.insert(name, value);
            }
            Value::Object(first)
        }
        // Go decodes null only into pointers, lists, maps, and types with a decoder.
        (
            Kind::Struct(_) | Kind::String(_) | Kind::Int32 | Kind::Int64 | Kind::Bool,
            first,
            Value::Null,
        ) if is_plain => first,
        (_, _, second) => second,
    }
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::schema;
    use serde_json::json;

    use super::*;

    fn set(text: &str) -> Value {
        let found = schema::type_of_kind("apps/v1", "StatefulSet").unwrap();
        read(
            text.as_bytes(),
            Expect::Object(found),
            DuplicateMembers::Merge,
        )
        .unwrap()
    }

    #[test]
    fn repeated_members_merge() {
        let object = set(
            r#"{"spec":{"replicas":1,"template":{"metadata":{"labels":{"a":"1"}},
            "spec":{"containers":[{"name":"c","image":"i"},{"name":"d"}]}}},
            "spec":{"replicas":2,"template":{"metadata":{"labels":{"b":"2"}},
            "spec":{"containers":[{"name":"e"}]}},"serviceName":null},"spec":null,
            "metadata":{"name":"web"},"metadata":{"namespace":"n"}}"#,
        );
        let expected = json!({
            "metadata": {"name": "web", "namespace": "n"},
            "spec": {"replicas": 2, "serviceName": null, "template": {
                "metadata": {"labels": {"a": "1", "b": "2"}},
                "spec": {"containers": [{"name": "e", "image": "i"}]},
            }},
        });
        assert_eq!(object, expected);
        let gone = set(r#"{"spec":{"replicas":1,"replicas":null,"selector":{},"selector":null}}"#);
        assert_eq!(gone, json!({"spec": {"replicas": null, "selector": null}}));
    }

    #[test]
    fn repeated_members_in_patches_replace_each_other() {
        let text = br#"{"spec":{"replicas":1,"serviceName":"s"},"spec":{"replicas":2}}"#;
        let found = schema::type_of_kind("apps/v1", "StatefulSet").unwrap();
        let patch = read(text, Expect::Object(found), DuplicateMembers::Replace).unwrap();
        assert_eq!(patch, json!({"spec": {"replicas": 2}}));
    }

    #[test]
    fn deep_values_of_unknown_type_are_dropped() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        let object = set(&format!("{{\"zzz\":{deep},\"yyy\":[[1]]}}"));
        assert_eq!(object["yyy"], json!([[1]]));
        let depth = std::iter::successors(object.get("zzz"), |value| value.get(0)).count();
        assert!(depth <= DEPTH_MAX + 1, "{depth}");
    }

    #[test]
    fn deep_values_of_a_wrong_type_keep_their_type() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        let object = set(&format!("{{\"spec\":{{\"serviceName\":{deep}}}}}"));
        assert_eq!(object, json!({"spec": {"serviceName": []}}));
    }

    #[test]
    fn numbers_keep_the_precision_of_their_type() {
        let object = set(
            r#"{"spec":{"replicas":-0,"minReadySeconds":1e400,"volumeClaimTemplates":[{"spec":
            {"resources":{"requests":{"storage":1e400}}}}]}}"#,
        );
        assert_eq!(object["spec"]["replicas"], json!(0));
        assert_eq!(object["spec"]["minReadySeconds"], json!(f64::MAX));
        let claim = &object["spec"]["volumeClaimTemplates"][0];
        assert_eq!(
            claim["spec"]["resources"]["requests"]["storage"],
            json!("1e400")
        );
    }

    #[test]
    fn text_beyond_go_nesting_limit_fails() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let read = |text: String| read(text.as_bytes(), Expect::Anything, DuplicateMembers::Merge);
        assert!(read(nested(10_000)).is_ok());
        assert_eq!(read(nested(10_001)).unwrap_err(), "exceeded max depth");
    }
}
