//! The walk over a body's text that finds unknown and repeated members, in the text's order.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use kube_apimachinery::schema::{Shape, Type};
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::kinds::Kind;
use crate::normalize::type_of;

/// How many findings are reported at most.
///
/// Upstream: `saveStrictError` of `sigs.k8s.io/json`
const FINDINGS_MAX: usize = 100;

/// What is wrong with a member, with its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The schema doesn't know it.
    Unknown(String),
    /// It occurs twice in one object.
    Repeated(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(path) => write!(f, "unknown field {path:?}"),
            Self::Repeated(path) => write!(f, "duplicate field {path:?}"),
        }
    }
}

/// What is wrong with an object's members; nothing if the text isn't JSON, which is reported
/// elsewhere.
pub(super) fn walk(kind: &Kind, text: &str) -> Vec<Finding> {
    run(type_of(kind).map_or(Expect::Anything, Expect::Object), text)
}

/// Members that occur twice in any JSON text.
pub(super) fn repeated(text: &str) -> Vec<Finding> {
    run(Expect::Anything, text)
}

/// Whether members occur twice in JSON text.
pub(crate) fn has_repeated(text: &str) -> bool {
    !repeated(text).is_empty()
}

fn run(expect: Expect, text: &str) -> Vec<Finding> {
    let mut state = State::default();
    let walk = Walk {
        expect,
        state: &mut state,
    };
    let mut parser = serde_json::Deserializer::from_str(text);
    let _ = walk.deserialize(&mut parser);
    state.found
}

/// What is known about a value.
#[derive(Clone, Copy, Debug)]
enum Expect {
    /// It is an object of this type.
    Object(&'static Type),
    /// It is a list of objects of this type.
    List(&'static Type),
    /// It is a map to objects of this type.
    Map(&'static Type),
    /// Nothing.
    Anything,
}

impl Expect {
    /// What is known about a member; none if there is no such member.
    fn member(self, name: &str) -> Option<Self> {
        match self {
            Self::Object(found) => {
                let field = found.field(name)?;
                let Some(inner) = field.object_type() else {
                    return Some(Self::Anything);
                };
                Some(match field.shape {
                    Shape::Plain | Shape::Pointer => Self::Object(inner),
                    Shape::List => Self::List(inner),
                    Shape::Map => Self::Map(inner),
                })
            }
            Self::Map(type_name) => Some(Self::Object(type_name)),
            Self::List(_) | Self::Anything => Some(Self::Anything),
        }
    }

    /// What is known about each element of a list.
    fn element(self) -> Self {
        match self {
            Self::List(type_name) => Self::Object(type_name),
            _ => Self::Anything,
        }
    }
}

/// Where the walk is, and what it has found.
#[derive(Default)]
struct State {
    path: String,
    found: Vec<Finding>,
}

/// The walk over one value.
struct Walk<'a> {
    expect: Expect,
    state: &'a mut State,
}

impl State {
    fn note(&mut self, finding: Finding) {
        if self.found.len() < FINDINGS_MAX && !self.found.contains(&finding) {
            self.found.push(finding);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        let state = self.state;
        let holder = state.path.len();
        while let Some(key) = map.next_key::<String>()? {
            if holder > 0 {
                state.path.push('.');
            }
            state.path.push_str(&key);
            let expect = self.expect.member(&key);
            let is_repeated = !seen.insert(key);
            if let Some(expect) = expect.filter(|_| !is_repeated) {
                map.next_value_seed(Walk { expect, state })?;
            } else {
                let path = state.path.clone();
                state.note(if is_repeated {
                    Finding::Repeated(path)
                } else {
                    Finding::Unknown(path)
                });
                map.next_value::<IgnoredAny>()?;
            }
            state.path.truncate(holder);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let expect = self.expect.element();
        let state = self.state;
        let holder = state.path.len();
        for index in 0.. {
            // Writing to a text can't fail.
            let _ = write!(state.path, "[{index}]");
            if list.next_element_seed(Walk { expect, state })?.is_none() {
                break;
            }
            state.path.truncate(holder);
        }
        state.path.truncate(holder);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: &str, text: &str) -> Vec<String> {
        let version = if kind == "StatefulSet" {
            "apps/v1"
        } else {
            "v1"
        };
        let kind = crate::kinds::by_kind(version, kind).unwrap();
        walk(kind, text).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn repeated_members_are_found_at_any_depth() {
        let text = r#"{"a":{"b":1,"b":2},"c":[{"d":1},{"d":1,"d":null}],"e":"x"}"#;
        let found: Vec<String> = repeated(text).iter().map(Finding::to_string).collect();
        let expected = ["duplicate field \"a.b\"", "duplicate field \"c[1].d\""];
        assert_eq!(found, expected);
        assert!(repeated("no json").is_empty());
    }

    #[test]
    fn findings_are_told_once_and_up_to_a_limit() {
        let twice = r#"{"a":1,"a":2,"a":3}"#;
        assert_eq!(repeated(twice).len(), 1);
        let many: Vec<String> = (0..200).map(|i| format!("\"m{i}\":1")).collect();
        let found = found("ConfigMap", &format!("{{{}}}", many.join(",")));
        assert_eq!(found.len(), FINDINGS_MAX);
        assert_eq!(found[99], "unknown field \"m99\"");
    }

    #[test]
    fn unknown_members_are_found_in_the_order_of_the_text() {
        let text = r#"{"kind":"StatefulSet","spec":{"template":{"spec":{"containers":[
            {"name":"c","imagee":{"x":1},"resources":{"limits":{"any":1}}}]}},"replica":3,
            "replicas":1,"replicas":2},"metadata":{"labels":{"any":"x"}},"Spec":{}}"#;
        let expected = [
            "unknown field \"spec.template.spec.containers[0].imagee\"",
            "unknown field \"spec.replica\"",
            "duplicate field \"spec.replicas\"",
            "unknown field \"Spec\"",
        ];
        assert_eq!(found("StatefulSet", text), expected);
    }

    #[test]
    fn the_members_of_every_kind_are_known() {
        let unknown = crate::kinds::KINDS
            .iter()
            .filter(|kind| type_of(kind).is_none());
        let unknown: Vec<&str> = unknown.map(|kind| kind.kind).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let text = r#"{"dat":{},"data":{"a":"b"},"metadata":{"label":{}}}"#;
        let expected = ["unknown field \"dat\"", "unknown field \"metadata.label\""];
        assert_eq!(found("ConfigMap", text), expected);
        let text = r#"{"spec":{"container":[]},"status":{"any":1},"stat":1}"#;
        let expected = [
            "unknown field \"spec.container\"",
            "unknown field \"status.any\"",
            "unknown field \"stat\"",
        ];
        assert_eq!(found("Pod", text), expected);
        let expected = ["unknown field \"any\""];
        assert_eq!(found("Event", r#"{"any":1}"#), expected);
    }
}
