//! Values that rules read.

use std::collections::HashMap;
use std::sync::Arc;

use cel::ExecutionError;
use cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer};
use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional,
    CelString, LIST_TYPE, Type,
};
use cel::common::value::{BuiltinRef, CowVal, Val};

use serde_json::Value as Json;

use super::authorizer::{About, Asked, Authorizer, Question, Resource, ResourceCheck};
use super::handle::shared;
use super::unreadable::Unreadable;

/// A value.
pub(crate) type Value = Box<dyn Val>;

/// The identity of list elements, by which lists are compared and added.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// By index.
    Index,
    /// By value.
    Itself,
    /// By fields of the elements.
    Members(Vec<String>),
}

pub(crate) fn null() -> Value {
    Box::new(CelNull)
}

pub(crate) fn bool(value: bool) -> Value {
    Box::new(CelBool::from(value))
}

pub(crate) fn int(value: i64) -> Value {
    Box::new(CelInt::from(value))
}

pub(crate) fn double(value: f64) -> Value {
    Box::new(CelDouble::from(value))
}

pub(crate) fn text(value: &str) -> Value {
    Box::new(CelString::from(value.to_owned()))
}

pub(crate) fn bytes(value: Vec<u8>) -> Value {
    Box::new(CelBytes::from(value))
}

pub(crate) fn map(members: Vec<(String, Value)>) -> Value {
    let members: HashMap<CelMapKey<'static>, Value> = members
        .into_iter()
        .map(|(name, value)| (CelMapKey::from(name), value))
        .collect();
    Box::new(CelMap::from(members))
}

pub(crate) fn list(elements: Vec<Value>, identity: Identity) -> Value {
    let elements = CelList::from(elements);
    match identity {
        Identity::Index => Box::new(elements),
        identity => Box::new(Keyed { elements, identity }),
    }
}

/// Returns a value that an expression can't read: reading it is an error with this text.
pub(crate) fn unreadable(error: &'static str) -> Value {
    Box::new(Unreadable(error))
}

/// Returns an optional value.
pub(crate) fn optional(value: Option<Value>) -> Value {
    Box::new(value.map_or_else(CelOptional::none, CelOptional::of))
}

/// Returns JSON as a value of no declared type.
///
/// Upstream: `NativeToValue` of cel-go for the content of an unstructured object
pub(crate) fn untyped(json: &Json) -> Value {
    match json {
        Json::Null => shared(null()),
        Json::Bool(value) => shared(bool(*value)),
        Json::Number(number) => shared(match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => int(value),
            (None, value) => double(value.unwrap_or(0.0)),
        }),
        Json::String(value) => shared(text(value)),
        Json::Array(items) => list(items.iter().map(untyped).collect(), Identity::Index),
        Json::Object(members) => {
            let members = members.iter();
            map(members
                .map(|(name, value)| (name.clone(), untyped(value)))
                .collect())
        }
    }
}

/// Returns true for null.
pub(crate) fn is_null(value: &Value) -> bool {
    value.downcast_ref::<CelNull>().is_some()
}

/// Returns the value, if it is true or false.
pub(crate) fn as_bool(value: &Value) -> Option<bool> {
    value.downcast_ref::<CelBool>().map(|found| *found.inner())
}

/// Returns the elements, if it is a list.
pub(crate) fn elements(value: &Value) -> Vec<Value> {
    let list = value.downcast_ref::<CelList<'_>>();
    let elements = list.into_iter().flat_map(CelList::inner);
    elements.map(|element| element.clone_as_boxed()).collect()
}

/// Returns the value, if it is a text.
pub(crate) fn as_text(value: &Value) -> Option<&str> {
    value.downcast_ref::<CelString<'_>>().map(CelString::inner)
}

/// Returns an authorizer.
pub(crate) fn authorizer(authorizer: &Arc<dyn Authorizer>) -> Value {
    Box::new(Asked {
        authorizer: Arc::clone(authorizer),
        question: Question::default(),
    })
}

/// Returns an authorizer's check of a resource.
pub(crate) fn resource_check(authorizer: &Arc<dyn Authorizer>, resource: Resource) -> Value {
    Box::new(ResourceCheck {
        authorizer: Arc::clone(authorizer),
        question: Question {
            about: About::Resource(resource),
            ..Question::default()
        },
    })
}

/// A list whose elements have an identity, so that their order doesn't count.
///
/// Upstream: `unstructuredSetList` and `unstructuredMapList` of `k8s.io/apiserver`
#[derive(Debug)]
struct Keyed {
    elements: CelList<'static>,
    identity: Identity,
}

impl Keyed {
    /// Returns true if two elements are the same one, perhaps with different contents.
    fn is_same(&self, one: &dyn Val, other: &dyn Val) -> bool {
        let Identity::Members(names) = &self.identity else {
            return one.equals(other);
        };
        names.iter().all(|name| {
            let key = CelString::from(name.as_str());
            match (member(one, &key), member(other, &key)) {
                (Some(one), Some(other)) => one.equals(&*other),
                (None, None) => true,
                _ => false,
            }
        })
    }

    fn copy(&self) -> Self {
        Self {
            elements: self.elements.clone(),
            identity: self.identity.clone(),
        }
    }
}

fn member<'b, 'v>(of: &'b (dyn Val + 'v), key: &CelString<'_>) -> Option<CowVal<'b, 'v>> {
    of.as_indexer()?.get(key).ok()
}

impl Val for Keyed {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &LIST_TYPE
    }

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.elements.as_container()
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        self.elements.as_indexer()
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        self.elements.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.elements.as_sizer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(other) = other.downcast_ref::<CelList<'_>>() else {
            return false;
        };
        let (own, other) = (self.elements.inner(), other.inner());
        own.len() == other.len()
            && own
                .iter()
                .all(|element| other.iter().any(|found| element.equals(found.as_ref())))
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.copy())
    }

    fn as_builtin<'b, 'v>(&'b self) -> BuiltinRef<'b, 'v>
    where
        Self: 'v,
    {
        self.elements.as_builtin()
    }
}

impl Adder for Keyed {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let Some(other) = other.downcast_ref::<CelList<'_>>() else {
            let types = vec!["list".to_owned(), other.get_type().name().to_owned()];
            return Err(ExecutionError::no_such_overload("_+_", types));
        };
        let mut elements: Vec<Box<dyn Val + 'v>> = self
            .elements
            .inner()
            .iter()
            .map(|element| element.clone_as_boxed())
            .collect();
        for added in other.inner() {
            let same = elements
                .iter()
                .position(|element| self.is_same(element.as_ref(), added.as_ref()));
            match same.and_then(|place| elements.get_mut(place)) {
                Some(place) => *place = added.clone_as_boxed(),
                None => elements.push(added.clone_as_boxed()),
            }
        }
        Ok(CowVal::owned(CelList::from(elements)))
    }
}
