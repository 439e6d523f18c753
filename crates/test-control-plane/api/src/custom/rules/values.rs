//! Members of objects as values of rules.
//!
//! Upstream: `UnstructuredToVal` of `k8s.io/apiserver/pkg/cel/common`

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::declared::is_of_metadata;
use crate::cel::values::{self, Identity};
use crate::cel::{duration, escape, escape_reserved, timestamp};
use crate::custom::schema::{AdditionalProperties, ListType, Schema, SchemaType};

/// Returns a value as rules read it. A root is an object with a kind and metadata.
pub(crate) fn read(schema: &Schema, value: &Value, is_root: bool) -> values::Value {
    match value {
        Value::Null => values::null(),
        Value::Bool(value) => values::bool(*value),
        Value::Number(number) => match (schema.of, number.as_i64(), number.as_u64()) {
            (Some(SchemaType::Number), ..) | (_, None, None) => {
                let value = number.as_f64().unwrap_or(0.0);
                match whole(value).filter(|_| schema.of != Some(SchemaType::Number)) {
                    Some(value) => values::int(value),
                    None => values::double(value),
                }
            }
            (_, Some(value), _) => values::int(value),
            (_, None, Some(value)) => values::uint(value),
        },
        Value::String(value) => text(schema, value),
        Value::Array(items) => list(schema, items),
        Value::Object(members) => object(schema, members, is_root),
    }
}

/// Returns an integer that is written with a fraction of zero.
#[expect(
    clippy::cast_possible_truncation,
    reason = "only whole numbers in range pass"
)]
fn whole(value: f64) -> Option<i64> {
    let is_whole = value.fract() == 0.0 && value.abs() < 9.2e18;
    is_whole.then_some(value as i64)
}

fn text(schema: &Schema, value: &str) -> values::Value {
    match schema.checks.format.as_str() {
        _ if schema.int_or_string => values::text(value),
        "byte" => match STANDARD.decode(value) {
            Ok(bytes) => values::bytes(bytes),
            Err(_) => values::text(value),
        },
        "date" => timestamp(&format!("{value}T00:00:00Z")),
        "date-time" => timestamp(value),
        "duration" => duration(value),
        _ => values::text(value),
    }
}

fn list(schema: &Schema, items: &[Value]) -> values::Value {
    let none = Schema::default();
    let inner = schema.items.as_deref().unwrap_or(&none);
    let elements = items.iter().map(|item| read(inner, item, inner.embedded));
    let identity = match schema.list_type {
        ListType::Atomic => Identity::Index,
        ListType::Set => Identity::Itself,
        ListType::Map => {
            let names = schema.list_keys.iter();
            Identity::Members(names.filter_map(|name| escape(name)).collect())
        }
    };
    values::list(elements.collect(), identity)
}

fn object(schema: &Schema, members: &Map<String, Value>, is_root: bool) -> values::Value {
    if let AdditionalProperties::Of(inner) = &schema.additional {
        let members = members.iter();
        let members =
            members.map(|(name, value)| (name.clone(), read(inner, value, inner.embedded)));
        return values::map(members.collect());
    }
    let none = Schema::default();
    let mut found = Vec::new();
    for (name, value) in members {
        if is_root && name == "metadata" {
            found.push((name.clone(), metadata(value)));
            continue;
        }
        let is_type = is_root && (name == "apiVersion" || name == "kind");
        let inner = schema.properties.get(name);
        let inner = inner.or_else(|| is_type.then_some(&none));
        if let (Some(inner), Some(escaped)) = (inner, escape(name)) {
            let value = read(inner, value, inner.embedded);
            if escape_reserved(name).is_some() {
                found.push((name.clone(), value.clone_as_boxed()));
            }
            found.push((escaped, value));
        }
    }
    values::map(found)
}

fn metadata(value: &Value) -> values::Value {
    let members = value.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| is_of_metadata(name));
    let none = Schema::default();
    let members = members.map(|(name, value)| (name.clone(), read(&none, value, false)));
    values::map(members.collect())
}
