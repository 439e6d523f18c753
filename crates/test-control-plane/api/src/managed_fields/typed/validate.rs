//! Type checks of applied configurations.
//!
//! Upstream: `validatingObjectWalker` of structured-merge-diff.

use std::collections::BTreeSet;
use std::fmt;

use kube_apimachinery::schema::Version;
use serde_json::{Map, Value};

use super::items;
use super::types::{Form, ListType, MapType, Relation, Scalar, TypeRef};
use crate::go;
use crate::managed_fields::path::PathElement;
use crate::settings::EmulatedVersion;

/// The treatment of members outside the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Reports them as errors, as upstream does; members of later versions, too.
    Declared(EmulatedVersion),
    /// Accepts them.
    Any,
}

impl Strictness {
    /// Returns the version of the schema.
    pub(crate) fn version(self) -> Version {
        match self {
            Self::Declared(version) => version.schema(),
            Self::Any => Version::NEWEST,
        }
    }
}

/// All type errors of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub(crate) struct TypeErrors(Vec<TypeError>);

/// One type error.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TypeError {
    /// The path, last step first.
    path: Vec<String>,
    message: String,
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => one.fmt(f),
            more => {
                f.write_str("errors:")?;
                for error in more {
                    write!(f, "\n  {error}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        for step in self.path.iter().rev() {
            f.write_str(step)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Checks an applied configuration.
///
/// # Errors
///
/// Values of a wrong type, members outside the schema, duplicate elements.
pub(crate) fn validate(
    of: TypeRef<'_>,
    value: &Value,
    strictness: Strictness,
) -> Result<(), TypeErrors> {
    let walk = Walk {
        keeps_unknown: strictness == Strictness::Any,
        is_object: false,
    };
    let found = walk.value(of, value);
    if found.is_empty() {
        Ok(())
    } else {
        Err(TypeErrors(found))
    }
}

/// Reports whether a value has the right types. It may have members outside the schema and duplicate
/// elements.
pub(crate) fn is_typed(of: TypeRef<'_>, value: &Value) -> bool {
    let (keeps_unknown, is_object) = (true, true);
    let walk = Walk {
        keeps_unknown,
        is_object,
    };
    walk.value(of, value).is_empty()
}

/// Like [`is_typed`], but without members outside the schema.
pub(crate) fn is_declared(of: TypeRef<'_>, value: &Value) -> bool {
    let (keeps_unknown, is_object) = (false, true);
    let walk = Walk {
        keeps_unknown,
        is_object,
    };
    walk.value(of, value).is_empty()
}

struct Walk {
    /// Whether members outside the schema are right.
    keeps_unknown: bool,
    /// Whether the value is an object, which may have duplicate elements, not a configuration.
    is_object: bool,
}

impl Walk {
    fn value(&self, of: TypeRef<'_>, value: &Value) -> Vec<TypeError> {
        match (of.form(Some(value)), value) {
            (_, Value::Null) => Vec::new(),
            (Form::Scalar(scalar), value) => self::scalar(scalar, value).into_iter().collect(),
            (Form::Map(map), Value::Object(members)) => self.members(map, members),
            (Form::Map(_), value) => vec![error(format!(
                "expected map, got &{{{}}}",
                go::fmt::value(value)
            ))],
            (Form::List(list), Value::Array(items)) => self.elements(list, items),
            (Form::List(_), value) => {
                vec![error(format!(
                    "expected list, got &{{{}}}",
                    go::fmt::value(value)
                ))]
            }
        }
    }

    fn members(&self, map: MapType<'_>, members: &Map<String, Value>) -> Vec<TypeError> {
        let mut found = Vec::new();
        for (name, value) in members {
            let step = PathElement::field(name).to_string();
            match map.member(name) {
                Some(of) => found.extend(below(&step, self.value(of, value))),
                None if self.keeps_unknown => {}
                None => {
                    // The check of an object stops at its first unknown member.
                    let unknown = error("field not declared in schema".to_owned());
                    found.extend(below(&step, vec![unknown]));
                    break;
                }
            }
        }
        found
    }

    fn elements(&self, list: ListType<'_>, items: &[Value]) -> Vec<TypeError> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for (i, item) in items.iter().enumerate() {
            let step = if matches!(list.relation, Relation::Atomic) {
                format!("[{i}]")
            } else {
                let element = match items::element(list, item) {
                    Ok(element) => element,
                    Err(err) => {
                        found.push(error(format!("element {i}: {err}")));
                        return found;
                    }
                };
                let step = element.to_string();
                if !seen.insert(element) && !self.is_object {
                    found.push(error(format!("duplicate entries for key {step}")));
                }
                step
            };
            found.extend(below(&step, self.value(list.element, item)));
        }
        found
    }
}

fn scalar(scalar: Scalar, value: &Value) -> Option<TypeError> {
    let message = match (scalar, value) {
        (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return None,
        (Scalar::Numeric, value) => {
            format!(
                "expected numeric (int or float), got {}",
                go::fmt::type_name(value)
            )
        }
        (Scalar::String, value) => {
            let value = go::fmt::syntax(value);
            format!("expected string, got &value.valueUnstructured{{Value:{value}}}")
        }
        (Scalar::Boolean, value) => {
            format!("expected boolean, got &{{{}}}", go::fmt::value(value))
        }
        (Scalar::Untyped, value) => {
            format!("expected any scalar, got &{{{}}}", go::fmt::value(value))
        }
    };
    Some(error(message))
}

fn error(message: String) -> TypeError {
    let path = Vec::new();
    TypeError { path, message }
}

fn below(step: &str, mut errors: Vec<TypeError>) -> Vec<TypeError> {
    for error in &mut errors {
        error.path.push(step.to_owned());
    }
    errors
}
