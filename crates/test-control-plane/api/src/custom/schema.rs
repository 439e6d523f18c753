//! The structural schema of a custom resource.
//!
//! Upstream: `Structural` of `k8s.io/apiextensions-apiserver`.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

#[cfg(feature = "cel")]
use super::rule::Rule;
use crate::go::pattern;
use crate::members::text;

/// The type in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaType {
    /// `array`.
    Array,
    /// `boolean`.
    Boolean,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `object`.
    Object,
    /// `string`.
    String,
}

impl SchemaType {
    /// All types, in the order of messages.
    pub(crate) const ALL: [Self; 6] = [
        Self::Array,
        Self::Boolean,
        Self::Integer,
        Self::Number,
        Self::Object,
        Self::String,
    ];

    /// Returns the name in schemas.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }

    /// Returns the type of this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// The schema of fields that `properties` doesn't name.
#[derive(Clone, Debug, Default)]
pub(crate) enum AdditionalProperties {
    /// There are no such fields.
    #[default]
    None,
    /// Any value.
    Any,
    /// `false`: a write with such fields is refused.
    Forbidden,
    /// Values of this schema.
    Of(Box<Schema>),
}

/// The identity of list elements: `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// Elements have none.
    #[default]
    Atomic,
    /// By value.
    Set,
    /// By the fields in `x-kubernetes-list-map-keys`.
    Map,
}

/// A schema.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent members of schemas"
)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    /// The type; `None` for any.
    pub(crate) of: Option<SchemaType>,
    /// `x-kubernetes-int-or-string`.
    pub(crate) int_or_string: bool,
    /// `nullable`.
    pub(crate) nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub(crate) preserve: bool,
    /// `x-kubernetes-embedded-resource`.
    pub(crate) embedded: bool,
    /// `default`. Null counts as none.
    pub(crate) default: Option<Value>,
    /// `properties`.
    pub(crate) properties: BTreeMap<String, Schema>,
    /// `additionalProperties`.
    pub(crate) additional: AdditionalProperties,
    /// `items`.
    pub(crate) items: Option<Box<Schema>>,
    /// `x-kubernetes-list-type`.
    pub(crate) list_type: ListType,
    /// `x-kubernetes-list-map-keys`.
    pub(crate) list_keys: Vec<String>,
    /// True for `x-kubernetes-map-type: atomic`.
    pub(crate) atomic_map: bool,
    /// The value validations.
    pub(crate) checks: Checks,
    /// `x-kubernetes-validations`.
    #[cfg(feature = "cel")]
    pub(crate) rules: Vec<Rule>,
}

/// The value validations of a schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    pub(crate) required: Vec<String>,
    pub(crate) choices: Option<Vec<Value>>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) format: String,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

/// A pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// It as written.
    pub(crate) source: String,
    pub(crate) compiled: Regex,
}

impl Pattern {
    fn read(source: &str) -> Option<Self> {
        let compiled = Some(source).filter(|source| !source.is_empty())?;
        Some(Self {
            source: source.to_owned(),
            compiled: pattern::compile(compiled).ok()?,
        })
    }
}

impl Schema {
    /// Reads a schema of a stored definition. Fields of a wrong type count as absent.
    pub(crate) fn read(from: &Value) -> Self {
        let schemas = |member: &str| -> Vec<Self> {
            let list = from.get(member).and_then(Value::as_array);
            list.into_iter().flatten().map(Self::read).collect()
        };
        let properties = from.get("properties").and_then(Value::as_object);
        let additional = match from.get("additionalProperties") {
            Some(Value::Bool(true)) => AdditionalProperties::Any,
            Some(Value::Bool(false)) => AdditionalProperties::Forbidden,
            Some(schema @ Value::Object(_)) => {
                AdditionalProperties::Of(Box::new(Self::read(schema)))
            }
            _ => AdditionalProperties::None,
        };
        let boxed = |member: &str| {
            let found = from.get(member).filter(|found| found.is_object());
            found.map(|found| Box::new(Self::read(found)))
        };
        Self {
            of: SchemaType::of_name(text(from, "type")),
            int_or_string: flag(from, "x-kubernetes-int-or-string"),
            nullable: flag(from, "nullable"),
            preserve: flag(from, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(from, "x-kubernetes-embedded-resource"),
            default: from.get("default").filter(|it| !it.is_null()).cloned(),
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), Self::read(schema)))
                .collect(),
            additional,
            items: boxed("items"),
            list_type: match text(from, "x-kubernetes-list-type") {
                "set" => ListType::Set,
                "map" => ListType::Map,
                _ => ListType::Atomic,
            },
            list_keys: texts(from, "x-kubernetes-list-map-keys"),
            atomic_map: text(from, "x-kubernetes-map-type") == "atomic",
            checks: Checks {
                required: texts(from, "required"),
                choices: from.get("enum").and_then(Value::as_array).cloned(),
                pattern: Pattern::read(text(from, "pattern")),
                format: text(from, "format").to_owned(),
                minimum: number(from, "minimum"),
                maximum: number(from, "maximum"),
                exclusive_minimum: flag(from, "exclusiveMinimum"),
                exclusive_maximum: flag(from, "exclusiveMaximum"),
                multiple_of: number(from, "multipleOf"),
                min_length: integer(from, "minLength"),
                max_length: integer(from, "maxLength"),
                min_items: integer(from, "minItems"),
                max_items: integer(from, "maxItems"),
                min_properties: integer(from, "minProperties"),
                max_properties: integer(from, "maxProperties"),
                all_of: schemas("allOf"),
                any_of: schemas("anyOf"),
                one_of: schemas("oneOf"),
                not: boxed("not"),
            },
            #[cfg(feature = "cel")]
            rules: Rule::read_all(from),
        }
    }

    /// Returns the schema of a field; `None` if the schema doesn't specify it.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        match (self.properties.get(name), &self.additional) {
            (Some(schema), _) => Some(schema),
            (None, AdditionalProperties::Of(schema)) => Some(schema),
            (None, _) => None,
        }
    }
}

/// Returns true if a field is `true`.
pub(crate) fn flag(from: &Value, member: &str) -> bool {
    from.get(member) == Some(&Value::Bool(true))
}

fn number(from: &Value, member: &str) -> Option<f64> {
    from.get(member)?.as_f64()
}

fn integer(from: &Value, member: &str) -> Option<i64> {
    from.get(member)?.as_i64()
}

/// Returns the texts of a list.
pub(crate) fn texts(from: &Value, member: &str) -> Vec<String> {
    let list = from.get(member).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
