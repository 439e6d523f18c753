//! `/scale` of custom resources.

use serde_json::{Map, Value, json};

use crate::members::{at, text, text_at};

/// The paths of a scale, as JSON paths with a leading dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Of the desired replicas.
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

    /// Returns the desired replicas of an object.
    pub fn wanted<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        found(object, &self.spec)
    }

    /// Sets the desired replicas of an object, with the fields around them.
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
        let metadata = |member: &str| text_at(object, &format!("/metadata/{member}"));
        let number = |path: &str| found(object, path).and_then(Value::as_i64).unwrap_or(0);
        let mut scale = json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": metadata("name"),
                "uid": metadata("uid"),
                "resourceVersion": metadata("resourceVersion"),
                "creationTimestamp": metadata("creationTimestamp"),
            },
            "spec": {},
            "status": {"replicas": number(&self.status)},
        });
        if !metadata("namespace").is_empty() {
            scale["metadata"]["namespace"] = json!(metadata("namespace"));
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
}

/// Returns the value at a JSON path.
fn found<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    at(object, &path.replace('.', "/")).filter(|value| !value.is_null())
}
