//! The types of custom resources, by their schema.
//!
//! Upstream: `ToStructuralOpenAPIV2` and the conversion to a schema of structured-merge-diff.

use kube_apimachinery::schema;
use serde_json::Value;

use super::types::{Form, ListType as TypedList, MapType, Relation, Scalar, TypeRef};
use crate::custom::{AdditionalProperties, ListType, Schema, SchemaType};

/// Returns the form of a value of the schema.
pub(super) fn form<'a>(schema: &'a Schema, has_meta: bool, value: Option<&Value>) -> Form<'a> {
    if schema.int_or_string {
        return Form::Scalar(Scalar::Untyped);
    }
    match schema.of {
        Some(SchemaType::String) => Form::Scalar(Scalar::String),
        Some(SchemaType::Integer | SchemaType::Number) => Form::Scalar(Scalar::Numeric),
        Some(SchemaType::Boolean) => Form::Scalar(Scalar::Boolean),
        Some(SchemaType::Array) => Form::List(TypedList {
            relation: match schema.list_type {
                ListType::Atomic => Relation::Atomic,
                ListType::Set => Relation::Set,
                ListType::Map => Relation::Named(&schema.list_keys),
            },
            element: schema.items.as_deref().map_or(TypeRef::Deduced, of_schema),
        }),
        Some(SchemaType::Object) => Form::Map(MapType {
            of: None,
            custom: Some((schema, has_meta || schema.embedded)),
            element: match &schema.additional {
                AdditionalProperties::Of(inner) => Some(of_schema(inner)),
                AdditionalProperties::Any => Some(TypeRef::Deduced),
                AdditionalProperties::None if schema.preserve => Some(TypeRef::Deduced),
                AdditionalProperties::None => None,
            },
            atomic: schema.atomic_map,
        }),
        None => TypeRef::Deduced.form(value),
    }
}

/// Returns true if values of the schema may have any form.
pub(super) fn is_open(schema: &Schema) -> bool {
    schema.of.is_none() && !schema.int_or_string
}

/// Returns the type of a member that the schema names. Whole objects have metadata.
pub(super) fn field<'a>(schema: &'a Schema, has_meta: bool, name: &str) -> Option<TypeRef<'a>> {
    match name {
        "apiVersion" | "kind" if has_meta => Some(TypeRef::Scalar(Scalar::String)),
        "metadata" if has_meta => {
            let of = schema::find_type("ObjectMeta")?;
            Some(TypeRef::Object { of, atomic: false })
        }
        _ => schema.properties.get(name).map(of_schema),
    }
}

/// Returns the default of a key that a list element lacks.
pub(super) fn key_default(element: TypeRef<'_>, key: &str) -> Option<Value> {
    match element {
        TypeRef::Custom { schema, .. } => schema.properties.get(key)?.default.clone(),
        _ => None,
    }
}

fn of_schema(schema: &Schema) -> TypeRef<'_> {
    if is_open(schema) {
        return TypeRef::Deduced;
    }
    TypeRef::Custom {
        schema,
        has_meta: schema.embedded,
    }
}
