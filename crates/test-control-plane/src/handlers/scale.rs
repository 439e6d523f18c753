//! The scale of a stateful set: `autoscaling/v1` in place of the object.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Source;
use crate::object::Draft;
use crate::options::WriteOptions;
use crate::route::{ResourceRequest, Target};
use crate::server::ApiServer;
use crate::status::{ApiError, ApiResult};
use crate::validation::FieldError;
use crate::write::stored;

impl ApiServer {
    /// Reads the scale of an object.
    pub(crate) fn get_scale(&self, request: &ResourceRequest) -> ApiResult<Bytes> {
        let object = self
            .store()
            .get(&Self::key(request))
            .ok_or_else(|| ApiError::not_found(stored(request.kind), &request.name))?;
        Ok(scale_of(&object.draft()).to_string().into())
    }

    /// Changes the scale of an object.
    pub(crate) fn update_scale(
        &self,
        request: &ResourceRequest,
        source: &Source,
        options: WriteOptions,
    ) -> ApiResult<Bytes> {
        let kind = stored(request.kind);
        let object = self
            .store()
            .get(&Self::key(request))
            .ok_or_else(|| ApiError::not_found(kind, &request.name))?;
        let old = object.draft();
        let before = Draft {
            value: scale_of(&old),
            data: None,
        };
        let scale = match source {
            Source::Put(scale) => scale.clone(),
            Source::Patch(patch) => patch.apply(kind, &before)?,
        };
        let name = scale.metadata().name();
        if !name.is_empty() && name != request.name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                request.name
            )));
        }
        let replicas = scale
            .value
            .pointer("/spec/replicas")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        if replicas < 0 {
            let error = FieldError::invalid(
                "spec.replicas",
                &json!(replicas),
                "must be greater than or equal to 0",
            );
            return Err(ApiError::invalid_kind(
                "Scale",
                "autoscaling",
                &request.name,
                &[error],
            ));
        }
        let mut draft = old;
        draft.value["spec"]["replicas"] = json!(replicas);
        let metadata = draft.metadata_mut();
        metadata.remove("resourceVersion");
        for (member, wanted) in [
            ("resourceVersion", scale.metadata().resource_version()),
            ("uid", scale.metadata().uid()),
        ] {
            if !wanted.is_empty() {
                metadata.insert(member.to_owned(), json!(wanted));
            }
        }
        let whole = ResourceRequest {
            target: Target::Object,
            ..request.clone()
        };
        let (text, _) = self.update(&whole, &Source::Put(draft), options)?;
        let updated = Draft::parse(kind, &text)
            .map_err(|err| ApiError::internal(format!("reading the updated object: {err}")))?;
        Ok(scale_of(&updated).to_string().into())
    }
}

fn scale_of(object: &Draft) -> Value {
    let number = |pointer: &str| {
        let value = object.value.pointer(pointer).and_then(Value::as_i64);
        value.unwrap_or(0)
    };
    let metadata = object.metadata();
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata.name(),
            "namespace": metadata.namespace(),
            "uid": metadata.uid(),
            "resourceVersion": metadata.resource_version(),
            "creationTimestamp": metadata.text("creationTimestamp"),
        },
        "spec": {"replicas": number("/spec/replicas")},
        "status": {
            "replicas": number("/status/replicas"),
            "selector": selector_text(object.value.pointer("/spec/selector")),
        },
    })
}

/// A label selector as a query string.
fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector else {
        return String::new();
    };
    let mut terms: Vec<String> = Vec::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let key = expression
            .get("key")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let values = values.join(",");
        terms.push(match expression.get("operator").and_then(Value::as_str) {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    terms.sort();
    terms.join(",")
}
