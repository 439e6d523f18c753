//! Shapes that a schema declares for rules.
//!
//! Upstream: `SchemaDeclType` of `k8s.io/apiserver`

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cel::{REQUEST_MAX, Scalar, Shape, escape};
use crate::custom::schema::{AdditionalProperties, Schema, SchemaType};

/// The fields of metadata that rules can read.
const METADATA: [&str; 2] = ["generateName", "name"];

/// Returns the shape of a schema's values; `None` for values without a type, which rules can't
/// read. A root is an object with a kind and metadata.
pub(crate) fn shape(schema: &Schema, is_root: bool) -> Option<Shape> {
    if schema.int_or_string {
        return Some(Shape::scalar(Scalar::Any, 1, REQUEST_MAX - 2));
    }
    let count = |max: Option<i64>| max.map(|max| u64::try_from(max).unwrap_or(0));
    Some(match schema.of? {
        SchemaType::Boolean => Shape::scalar(Scalar::Bool, 4, 0),
        SchemaType::Integer => Shape::scalar(Scalar::Int, 1, 0),
        SchemaType::Number => Shape::scalar(Scalar::Double, 1, 0),
        SchemaType::String => text(schema),
        SchemaType::Array => {
            let items = schema.items.as_deref()?;
            Shape::list(
                shape(items, items.embedded)?,
                count(schema.checks.max_items),
            )
        }
        SchemaType::Object => match &schema.additional {
            AdditionalProperties::Of(inner) => {
                let max = count(schema.checks.max_properties);
                Shape::map(shape(inner, inner.embedded)?, max)
            }
            _ => object(schema, is_root),
        },
    })
}

fn object(schema: &Schema, is_root: bool) -> Shape {
    let (mut fields, mut least) = (BTreeMap::new(), 2);
    for (name, inner) in &schema.properties {
        let Some(field) = shape(inner, inner.embedded) else {
            continue;
        };
        if schema.checks.required.contains(name) && inner.default.is_none() {
            least += name.len() as u64 + field.least() + 4;
        }
        if let Some(name) = escape(name) {
            fields.insert(name, field);
        }
    }
    if is_root {
        let name = || Shape::scalar(Scalar::Text, 2, REQUEST_MAX - 2);
        let metadata = METADATA.map(|member| (member.to_owned(), name()));
        let metadata = Shape::object(BTreeMap::from(metadata), 2);
        fields.insert("metadata".to_owned(), metadata);
        fields.insert("apiVersion".to_owned(), name());
        fields.insert("kind".to_owned(), name());
    }
    Shape::object(fields, least)
}

/// Upstream: `estimateMaxStringLengthPerRequest`
fn text(schema: &Schema) -> Shape {
    let checks = &schema.checks;
    let max = checks.max_length.map(|max| u64::try_from(max).unwrap_or(0));
    let unbounded = REQUEST_MAX - 2;
    match checks.format.as_str() {
        "byte" => Shape::scalar(Scalar::Bytes, 2, max.unwrap_or(unbounded)),
        "duration" => Shape::scalar(Scalar::Duration, 4, 32),
        "date" => Shape::scalar(Scalar::Timestamp, 12, 12),
        "date-time" => Shape::scalar(Scalar::Timestamp, 22, 37),
        _ => {
            let choices = checks.choices.iter().flatten();
            let longest = choices.filter_map(Value::as_str).map(str::len).max();
            let longest = longest.map(|longest| longest as u64);
            // A character has up to four bytes.
            let max = max.map(|max| max.saturating_mul(4)).or(longest);
            Shape::scalar(Scalar::Text, 2, max.unwrap_or(unbounded))
        }
    }
}

/// Returns true for a field of metadata that rules can read.
pub(super) fn is_of_metadata(name: &str) -> bool {
    METADATA.contains(&name)
}
