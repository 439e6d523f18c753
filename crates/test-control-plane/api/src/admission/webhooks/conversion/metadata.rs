//! The metadata of a converted object: that of the original, with labels and annotations of the
//! response.
//!
//! Upstream: `restoreObjectMeta`

use serde_json::{Map, Value, json};

use crate::go::fmt::type_name;
use crate::go::names;
use crate::status::FieldError;

/// The most bytes of all annotations.
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// Returns a converted object with the metadata of the original.
///
/// # Errors
///
/// The response has no metadata, or invalid labels or annotations.
pub(super) fn restored(original: &Value, converted: &Value) -> Result<Value, String> {
    let sent = converted.get("metadata");
    let sent = sent.ok_or("missing metadata in converted object")?;
    let sent = sent.as_object().ok_or_else(|| {
        let of = type_name(sent);
        format!("invalid metadata of type {of} in converted object")
    })?;
    let metadata = original.get("metadata").and_then(Value::as_object);
    let mut metadata = metadata.cloned().unwrap_or_default();
    for name in ["labels", "annotations"] {
        match sent.get(name).filter(|it| !it.is_null()) {
            None => drop(metadata.remove(name)),
            Some(found) => {
                let before = metadata.get(name).and_then(Value::as_object);
                check(name, before, found)?;
                metadata.insert(name.to_owned(), found.clone());
            }
        }
    }
    let mut restored = converted.clone();
    restored["metadata"] = Value::Object(metadata);
    Ok(restored)
}

/// Checks labels or annotations.
fn check(name: &str, before: Option<&Map<String, Value>>, found: &Value) -> Result<(), String> {
    let members = found.as_object().ok_or_else(|| {
        let of = type_name(found);
        format!("invalid metadata.{name} of type {of} in converted object")
    })?;
    if let Some((key, value)) = members.iter().find(|(_, value)| !value.is_string()) {
        let of = type_name(value);
        return Err(format!(
            "metadata.{name}[{key}] must be a string, but is {of} in converted object"
        ));
    }
    if before.is_some_and(|before| before == members) || before.is_none() && members.is_empty() {
        return Ok(());
    }
    let errors = match name {
        "labels" => label_errors(members),
        _ => annotation_errors(members),
    };
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = format!("{}: {}", error.field, error.message);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// Upstream: `ValidateLabels`
fn label_errors(labels: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = "metadata.labels";
    for (key, value) in labels {
        let of_key = names::qualified_name(key).into_iter();
        errors.extend(of_key.map(|why| FieldError::invalid(path, &json!(key), &why)));
        let of_value = names::label_value(value.as_str().unwrap_or_default());
        errors.extend(
            of_value
                .iter()
                .map(|why| FieldError::invalid(path, value, why)),
        );
    }
    errors
}

/// Upstream: `ValidateAnnotations`
fn annotation_errors(annotations: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // The path has this form in upstream.
    let path = "metadata.annotation";
    let mut size = 0;
    for (key, value) in annotations {
        let of_key = names::qualified_name(&key.to_lowercase()).into_iter();
        errors.extend(of_key.map(|why| FieldError::invalid(path, &json!(key), &why)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_SIZE_MAX {
        let detail = format!("may not be more than {ANNOTATIONS_SIZE_MAX} bytes");
        errors.push(FieldError::too_long(path, &detail));
    }
    errors
}
