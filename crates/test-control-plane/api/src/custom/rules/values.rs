//! Fields of objects as values of rules.
//!
//! Upstream: `UnstructuredToVal` of `k8s.io/apiserver/pkg/cel/common`

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::declared::is_of_metadata;
use crate::cel::values::{self, Identity};
use crate::cel::{duration, escape, escape_reserved, timestamp};
use crate::custom::schema::{AdditionalProperties, ListType, Schema, SchemaType};

/// A value as rules read it.
pub(crate) struct Read {
    pub(crate) value: values::Value,
    /// True if a number in the value isn't of its type, so that reading it is an error.
    pub(crate) has_unreadable: bool,
}

/// Returns a value as rules read it. A root is an object with a kind and metadata.
pub(crate) fn read(schema: &Schema, value: &Value, is_root: bool) -> Read {
    let mut reader = Reader::default();
    let value = reader.value(schema, value, is_root);
    Read {
        value,
        has_unreadable: reader.has_unreadable,
    }
}

#[derive(Default)]
struct Reader {
    has_unreadable: bool,
}

impl Reader {
    fn value(&mut self, schema: &Schema, value: &Value, is_root: bool) -> values::Value {
        match value {
            Value::Null => values::null(),
            Value::Bool(value) => values::bool(*value),
            Value::Number(number) => self.number(schema, number),
            Value::String(value) => text(schema, value),
            Value::Array(items) => self.list(schema, items),
            Value::Object(members) => self.object(schema, members, is_root),
        }
    }

    /// Returns a number. Go decodes one with a point or an exponent as a float, even if it is whole,
    /// and floats are no integers here. In stored objects, whole numbers have neither.
    fn number(&mut self, schema: &Schema, number: &Number) -> values::Value {
        let is_float = schema.of == Some(SchemaType::Number) && !schema.int_or_string;
        match number.as_i64() {
            Some(value) if !is_float => values::int(value),
            None if schema.int_or_string => self.unreadable(
                "invalid data, expected XIntOrString value to be either a string or integer",
            ),
            None if schema.of == Some(SchemaType::Integer) => {
                self.unreadable("invalid data, expected int, got float64")
            }
            _ => values::double(number.as_f64().unwrap_or(0.0)),
        }
    }

    fn unreadable(&mut self, error: &'static str) -> values::Value {
        self.has_unreadable = true;
        values::unreadable(error)
    }

    fn list(&mut self, schema: &Schema, items: &[Value]) -> values::Value {
        let none = Schema::default();
        let inner = schema.items.as_deref().unwrap_or(&none);
        let elements = items
            .iter()
            .map(|item| self.value(inner, item, inner.embedded));
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

    fn object(
        &mut self,
        schema: &Schema,
        members: &Map<String, Value>,
        is_root: bool,
    ) -> values::Value {
        if let AdditionalProperties::Of(inner) = &schema.additional {
            let members = members.iter();
            let members = members
                .map(|(name, value)| (name.clone(), self.value(inner, value, inner.embedded)));
            return values::map(members.collect());
        }
        let none = Schema::default();
        let mut found = Vec::new();
        for (name, value) in members {
            if is_root && name == "metadata" {
                found.push((name.clone(), self.metadata(value)));
                continue;
            }
            let is_type = is_root && (name == "apiVersion" || name == "kind");
            let inner = schema.properties.get(name);
            let inner = inner.or_else(|| is_type.then_some(&none));
            if let (Some(inner), Some(escaped)) = (inner, escape(name)) {
                let value = self.value(inner, value, inner.embedded);
                if escape_reserved(name).is_some() {
                    found.push((name.clone(), value.clone_as_boxed()));
                }
                found.push((escaped, value));
            }
        }
        values::map(found)
    }

    fn metadata(&mut self, value: &Value) -> values::Value {
        let members = value.as_object().into_iter().flatten();
        let members = members.filter(|(name, _)| is_of_metadata(name));
        let none = Schema::default();
        let members = members.map(|(name, value)| (name.clone(), self.value(&none, value, false)));
        values::map(members.collect())
    }
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
