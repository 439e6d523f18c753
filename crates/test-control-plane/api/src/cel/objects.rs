//! Objects and patches that expressions make.
//!
//! Upstream: `k8s.io/apiserver/pkg/cel/mutation`, and the library `JSONPatch`

use std::any::Any;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cel::common::traits::Indexer;
use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelNull, CelOptional, CelString,
    CelUInt, MAP_TYPE, STRING_TYPE, Type as CelTypeName,
};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_overload};
use serde_json::{Map, Value as Json, json};

use super::types::Type;
use super::values::Value;

/// The function that makes an object: it takes a name and a map of fields.
pub(super) const MAKE: &str = "@make";

/// The function that escapes a step of a JSON pointer.
pub(super) const ESCAPE: &str = "jsonpatch.escapeKey";

/// The type of an operation of a JSON patch.
pub(crate) const PATCH: &str = "JSONPatch";

/// The type of a whole object.
pub(crate) const OBJECT: &str = "Object";

/// Returns true for the name of a type that expressions make.
pub(super) fn is_type(name: &str) -> bool {
    let rest = name.strip_prefix(OBJECT);
    name == PATCH || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the type of a field; `None` if there is no such field.
pub(super) fn field(of: &str, name: &str) -> Option<Type> {
    match (of, name) {
        (PATCH, "op" | "path" | "from") => Some(Type::String),
        (PATCH, "value") => Some(Type::Dyn),
        (PATCH, _) => None,
        _ => Some(Type::Dyn),
    }
}

static MADE: CelTypeName = CelTypeName::new_unspecified_type("Object");

/// An object that an expression made.
#[derive(Debug)]
struct Made {
    name: String,
    members: CelMap<'static>,
}

impl Made {
    fn copy(&self) -> Self {
        Self {
            name: self.name.clone(),
            members: self.members.clone(),
        }
    }
}

impl Val for Made {
    fn get_type(&self) -> &CelTypeName {
        &MADE
    }

    fn cel_type() -> &'static CelTypeName {
        &MADE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        self.members.as_indexer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let other = other.downcast_ref::<Self>();
        other.is_some_and(|other| self.name == other.name && self.members.equals(&other.members))
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.copy())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Made {}

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_overload(MAKE, "make", vec![STRING_TYPE, MAP_TYPE], |arguments| {
        make(&arguments)
    })?;
    add_overload!(environment, fn escape: (CelString<'_>) -> CelString<'_>, name = "jsonpatch.escapeKey")
}

fn make<'b, 'v>(arguments: &[CowVal<'b, 'v>]) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [name, members] = arguments else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    let name = name.downcast_ref::<CelString<'v>>();
    let name = name.map_or("", CelString::inner).to_owned();
    let Some(members) = members.downcast_ref::<CelMap<'v>>() else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    let json = members.inner().iter().map(|(key, value)| {
        let key = key.inner().downcast_ref::<CelString<'v>>();
        let key = key.map_or("", CelString::inner).to_owned();
        Ok((key, owned(value.as_ref())?))
    });
    let members: Result<Vec<(String, Value)>, String> = json.collect();
    let members = members.map_err(|text| ExecutionError::function_error(MAKE, text))?;
    let members = members.into_iter();
    let members: std::collections::HashMap<_, _> = members
        .map(|(key, value)| (cel::common::types::CelMapKey::from(key), value))
        .collect();
    Ok(CowVal::owned(Made {
        name,
        members: CelMap::from(members),
    }))
}

/// Returns a copy of a value that borrows nothing.
fn owned(value: &dyn Val) -> Result<Value, String> {
    if let Some(made) = value.downcast_ref::<Made>() {
        return Ok(Box::new(made.copy()));
    }
    if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        let elements = list.inner().iter().map(|element| owned(element.as_ref()));
        let elements: Vec<Value> = elements.collect::<Result<_, String>>()?;
        return Ok(Box::new(CelList::from(elements)));
    }
    if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let members = map.inner().iter().map(|(key, value)| {
            let key = key.inner().downcast_ref::<CelString<'_>>();
            let key = key
                .map(CelString::inner)
                .ok_or("a map key is not a string")?;
            Ok((
                cel::common::types::CelMapKey::from(key.to_owned()),
                owned(value.as_ref())?,
            ))
        });
        let members: std::collections::HashMap<_, _> = members.collect::<Result<_, String>>()?;
        return Ok(Box::new(CelMap::from(members)));
    }
    Ok(super::values::untyped(&to_json(value)?))
}

fn escape<'v>(key: &CelString<'_>) -> CelString<'v> {
    CelString::from(key.inner().replace('~', "~0").replace('/', "~1"))
}

/// Returns the JSON of a value.
///
/// # Errors
///
/// The value has no JSON form; the text names its type.
pub(crate) fn to_json(value: &dyn Val) -> Result<Json, String> {
    if let Some(made) = value.downcast_ref::<Made>() {
        return to_json(&made.members);
    }
    if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        let elements = list.inner().iter().map(|element| to_json(element.as_ref()));
        return elements
            .collect::<Result<Vec<Json>, String>>()
            .map(Json::Array);
    }
    if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let mut members = Map::new();
        for (key, value) in map.inner() {
            let key = key.inner().downcast_ref::<CelString<'_>>();
            let key = key
                .map(CelString::inner)
                .ok_or("a map key is not a string")?;
            members.insert(key.to_owned(), to_json(value.as_ref())?);
        }
        return Ok(Json::Object(members));
    }
    if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        return match optional.inner() {
            Some(inner) => to_json(inner),
            None => Ok(Json::Null),
        };
    }
    scalar(value).ok_or_else(|| format!("unsupported type {}", value.get_type().name()))
}

fn scalar(value: &dyn Val) -> Option<Json> {
    if value.downcast_ref::<CelNull>().is_some() {
        return Some(Json::Null);
    }
    if let Some(found) = value.downcast_ref::<CelBool>() {
        return Some(json!(*found.inner()));
    }
    if let Some(found) = value.downcast_ref::<CelInt>() {
        return Some(json!(*found.inner()));
    }
    if let Some(found) = value.downcast_ref::<CelUInt>() {
        return Some(json!(*found.inner()));
    }
    if let Some(found) = value.downcast_ref::<CelDouble>() {
        return Some(json!(*found.inner()));
    }
    if let Some(found) = value.downcast_ref::<CelBytes<'_>>() {
        return Some(json!(STANDARD.encode(found.inner())));
    }
    value
        .downcast_ref::<CelString<'_>>()
        .map(|found| json!(found.inner()))
}

/// Returns the errors of objects whose type doesn't name the field that holds them.
///
/// Upstream: `CheckTypeNamesMatchFieldPathNames`
pub(crate) fn misplaced(value: &dyn Val) -> Vec<String> {
    let mut errors = Vec::new();
    if let Some(made) = value.downcast_ref::<Made>() {
        visit(value, &made.name, &mut errors);
    }
    errors
}

fn visit(value: &dyn Val, expected: &str, errors: &mut Vec<String>) {
    if let Some(made) = value.downcast_ref::<Made>() {
        if made.name != expected {
            errors.push(format!(
                "unexpected type name {:?}, expected {expected:?}, which matches field name path \
                 from root Object type",
                made.name
            ));
        }
        for (key, value) in made.members.inner() {
            let key = key.inner().downcast_ref::<CelString<'_>>();
            let key = key.map_or("", CelString::inner);
            visit(value.as_ref(), &format!("{expected}.{key}"), errors);
        }
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        for element in list.inner() {
            visit(element.as_ref(), expected, errors);
        }
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        for value in map.inner().values() {
            visit(value.as_ref(), expected, errors);
        }
    }
}

/// Returns the field of an operation that an expression made.
pub(crate) fn member(value: &dyn Val, name: &str) -> Option<Value> {
    let made = value.downcast_ref::<Made>()?;
    let mut members = made.members.inner().iter();
    let found = members.find(|(key, _)| {
        let key = key.inner().downcast_ref::<CelString<'_>>();
        key.map(CelString::inner) == Some(name)
    });
    found.map(|(_, value)| value.clone_as_boxed())
}
