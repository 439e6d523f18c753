//! `/scale` of custom resources.

use serde_json::{Map, Value, json};

use crate::members::{at, text};
use crate::object::MetadataRef;
use crate::status::FieldError;

/// The paths of a scale, as JSON paths with a leading dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Of the wanted replicas.
    pub spec: String,
    /// Of the existing replicas.
    pub status: String,
    /// Of the selector in its text form.
    pub selector: Option<String>,
}

impl Scale {
    pub(super) fn read(version: &Value) -> Option<Self> {
        let scale = version.pointer("/subresources/scale")?;
        scale.is_object().then(|| Self {
            spec: text(scale, "specReplicasPath").to_owned(),
            status: text(scale, "statusReplicasPath").to_owned(),
            selector: Some(text(scale, "labelSelectorPath").to_owned())
                .filter(|path| !path.is_empty()),
        })
    }

    /// Returns the wanted replicas of an object.
    pub fn wanted<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        found(object, &self.spec)
    }

    /// Sets the wanted replicas of an object, with the members around them.
    pub fn set_wanted(&self, object: &mut Value, replicas: Value) {
        let mut place = object;
        for step in self.spec.split('.').skip(1) {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[step];
        }
        *place = replicas;
    }

    /// Returns the scale of an object.
    pub fn of_object(&self, object: &Value) -> Value {
        let metadata = MetadataRef(object.get("metadata"));
        let number = |path: &str| found(object, path).and_then(Value::as_i64).unwrap_or(0);
        let mut scale = json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": metadata.name(),
                "uid": metadata.uid(),
                "resourceVersion": metadata.resource_version(),
                "creationTimestamp": metadata.text("creationTimestamp"),
            },
            "spec": {},
            "status": {"replicas": number(&self.status)},
        });
        if !metadata.namespace().is_empty() {
            scale["metadata"]["namespace"] = json!(metadata.namespace());
        }
        let wanted = number(&self.spec);
        if wanted != 0 {
            scale["spec"]["replicas"] = json!(wanted);
        }
        let selector = self.selector.as_deref();
        let selector = selector.and_then(|path| found(object, path)?.as_str());
        if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
            scale["status"]["selector"] = json!(selector);
        }
        scale
    }

    /// Returns the errors in the values that the paths lead to; those of the object itself, or those
    /// of its status.
    pub(super) fn check(&self, object: &Value, is_status: bool) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let path = if is_status { &self.status } else { &self.spec };
        if let Some(number) = found(object, path).and_then(Value::as_i64) {
            if number < 0 {
                let detail = "should be a non-negative integer";
                errors.push(FieldError::invalid(path.as_str(), &json!(number), detail));
            } else if number > i64::from(i32::MAX) {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                errors.push(FieldError::invalid(path.as_str(), &json!(number), &detail));
            }
        }
        if let Some(path) = self.selector.as_ref().filter(|_| is_status)
            && let Some(value) = found(object, path).filter(|value| !value.is_string())
        {
            let of = match value {
                Value::Number(number) if number.is_f64() => "float64",
                Value::Number(_) => "int64",
                Value::Bool(_) => "bool",
                Value::Array(_) => "[]interface {}",
                _ => "map[string]interface {}",
            };
            let detail =
                format!("{path} accessor error: {value} is of the type {of}, expected string");
            errors.push(FieldError::invalid(path.as_str(), &json!(""), &detail));
        }
        errors
    }
}

/// Returns the value at a JSON path.
fn found<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    at(object, &path.replace('.', "/")).filter(|value| !value.is_null())
}
