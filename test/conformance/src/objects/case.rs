//! Form of the recorded cases.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One request and its response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// Number of the case.
    pub id: String,
    /// Kind of the object.
    pub kind: String,
    /// The part of the object that the case varies.
    pub about: String,
    /// Kind of write, with the subresource.
    pub verb: String,
    /// Method of the request.
    pub method: String,
    /// Path of the request.
    pub path: String,
    /// Query of the request.
    pub query: String,
    /// Headers of the request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body of the request; without one, it is the stored object with `change`.
    pub body: Option<Value>,
    /// Changes of the stored object.
    #[serde(default)]
    pub change: Vec<Change>,
    /// The object before the request.
    pub before: Option<Value>,
    /// True if `before` was stored without validation.
    #[serde(default)]
    pub stored: bool,
    /// Status of the response.
    pub status: u16,
    /// Texts of the warnings, in order.
    pub warnings: Vec<String>,
    /// The object in the response.
    pub object: Option<Value>,
    /// The error in the response.
    pub error: Option<Value>,
}

/// A change of one field.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Change {
    /// Sets the field at a path.
    Set(Vec<Step>, Value),
    /// Removes the field at a path.
    Remove([Vec<Step>; 1]),
}

/// A step of a path.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// An element of a list.
    Element(usize),
    /// A field of an object.
    Field(String),
}

impl Case {
    /// Text that identifies the case in a report.
    pub fn title(&self) -> String {
        format!("{} {} {} ({})", self.id, self.verb, self.kind, self.about)
    }
}

impl Change {
    /// Changes an object. Missing fields on the path become objects, also before the index of an
    /// element, as in the recorder. An element that a list lacks changes nothing.
    pub fn apply(&self, object: &mut Value) {
        let (path, value) = match self {
            Self::Set(path, value) => (path, Some(value)),
            Self::Remove([path]) => (path, None),
        };
        let Some((last, before)) = path.split_last() else {
            return;
        };
        let mut at = object;
        for step in before {
            let Some(next) = step.of(at) else { return };
            at = next;
        }
        match value {
            Some(value) => {
                if let Some(slot) = last.of(at) {
                    *slot = value.clone();
                }
            }
            None => last.remove(at),
        }
    }
}

impl Step {
    /// Returns the value behind the step, which a missing field becomes.
    fn of<'a>(&self, at: &'a mut Value) -> Option<&'a mut Value> {
        if at.is_null() {
            *at = Value::Object(serde_json::Map::new());
        }
        match (self, at) {
            (Self::Element(index), Value::Array(list)) => list.get_mut(*index),
            (_, Value::Object(fields)) => Some(fields.entry(self.name()).or_insert(Value::Null)),
            _ => None,
        }
    }

    fn remove(&self, at: &mut Value) {
        match (self, at) {
            (Self::Element(index), Value::Array(list)) if *index < list.len() => {
                drop(list.remove(*index));
            }
            (_, Value::Object(fields)) => drop(fields.remove(&self.name())),
            _ => {}
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Element(index) => index.to_string(),
            Self::Field(name) => name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_fields_become_objects() {
        let change: Change = serde_json::from_value(json!([["a", 0, "b"], 1])).unwrap();
        let mut object = json!({});
        change.apply(&mut object);
        assert_eq!(object, json!({"a": {"0": {"b": 1}}}));
        let change: Change = serde_json::from_value(json!([["a", 1, "b"], 1])).unwrap();
        let mut object = json!({"a": [{}, {}]});
        change.apply(&mut object);
        assert_eq!(object, json!({"a": [{}, {"b": 1}]}));
    }
}
