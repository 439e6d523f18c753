//! Warnings about definitions of custom resources.

use serde_json::Value;

use crate::custom::Definition;
use crate::members::{list, text};
use crate::validation::is_known_format;

/// Returns a warning for each unknown format in the schemas.
pub(super) fn warnings(definition: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for version in Definition(definition).versions() {
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            unknown_formats(schema, &mut warnings);
        }
    }
    warnings
}

fn unknown_formats(schema: &Value, warnings: &mut Vec<String>) {
    let (of, format) = (text(schema, "type"), text(schema, "format"));
    if !format.is_empty() && !is_known_format(of, format) {
        warnings.push(format!("unrecognized format {format:?}"));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten().map(|(_, inner)| inner);
    let lists = ["allOf", "anyOf", "oneOf"].into_iter();
    let below = [&schema["items"]].into_iter();
    let below = below.chain(lists.flat_map(|name| list(schema, name)));
    let below = below.chain([&schema["not"]]).chain(properties);
    let below = below.chain([&schema["additionalProperties"]]);
    for inner in below.filter(|inner| inner.is_object()) {
        unknown_formats(inner, warnings);
    }
}
