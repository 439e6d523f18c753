//! The types of objects in expressions, by their schemas.
//!
//! Upstream: `SchemaDeclType` of `k8s.io/apiserver/pkg/cel/common`, for the schemas that
//! `PopulateRefs` of `k8s.io/apiserver/pkg/cel/openapi/resolver` returns

use kube_apimachinery::schema::{self, Field, Shape, Type as Struct, Version};

use super::known_kinds::KnownKinds;
use crate::cel::{Type, escape};
use crate::custom::{AdditionalProperties, Schema, SchemaType};
use crate::kinds::{Kind, type_in};

/// Returns the type of a kind's objects; `None` if the kind has no schema.
pub(super) fn of_kind(kind: &Kind, known: KnownKinds<'_>) -> Option<Type> {
    let name = format!("{}{}", kind.kind, known.suffix);
    match &kind.custom {
        Some(custom) => {
            let version = known.version;
            of_schema(&custom.schema, true, &name, version)
        }
        None => Some(of_struct(
            type_in(kind, known.version)?,
            &name,
            &mut Vec::new(),
        )),
    }
}

/// Returns the type of a built-in object. `around` are the types of the objects around it: one of
/// the same type inside has no known fields.
fn of_struct(of: &'static Struct, name: &str, around: &mut Vec<&'static str>) -> Type {
    if around.contains(&of.name) {
        return object(name, Vec::new());
    }
    around.push(of.name);
    let fields = of.fields.iter();
    let fields = fields.filter_map(|field| {
        let escaped = escape(field.name)?;
        let found = of_field(field, &format!("{name}.{escaped}"), around)?;
        Some((escaped, found))
    });
    let fields = fields.collect();
    around.pop();
    object(name, fields)
}

fn object(name: &str, fields: Vec<(String, Type)>) -> Type {
    Type::object(name.to_owned(), fields)
}

/// Returns the type of a field. Expressions can't read fields whose schema has no type, among them
/// quantities and lists and maps of them.
fn of_field(field: &Field, name: &str, around: &mut Vec<&'static str>) -> Option<Type> {
    Some(match field.shape {
        Shape::Plain | Shape::Pointer => of_value(field.kind, name, around)?,
        Shape::List => Type::list(of_value(field.kind, &format!("{name}.@idx"), around)?),
        Shape::Map => {
            let element = of_value(field.kind, &format!("{name}.@elem"), around)?;
            Type::map(Type::String, element)
        }
    })
}

fn of_value(kind: schema::Kind, name: &str, around: &mut Vec<&'static str>) -> Option<Type> {
    use schema::Kind;
    Some(match kind {
        Kind::Bool => Type::Bool,
        Kind::Bytes => Type::Bytes,
        Kind::Float => Type::Double,
        Kind::Int32 | Kind::Int64 => Type::Int,
        Kind::IntOrString => Type::Dyn,
        Kind::Raw => object(name, Vec::new()),
        Kind::String(_) => Type::String,
        Kind::Strings => Type::list(Type::String),
        Kind::Struct(of) => of_struct(of.find()?, name, around),
        Kind::Time | Kind::MicroTime => Type::Timestamp,
        Kind::Either(..) | Kind::Json | Kind::Quantity => return None,
    })
}

/// Returns the type of a custom resource's part. A resource has a kind and all metadata.
fn of_schema(schema: &Schema, is_resource: bool, name: &str, version: Version) -> Option<Type> {
    if schema.int_or_string {
        return Some(Type::Dyn);
    }
    let inner = |of: &Schema, step: &str| {
        let name = format!("{name}.{step}");
        of_schema(of, of.embedded, &name, version)
    };
    Some(match (schema.of?, &schema.additional) {
        (SchemaType::Boolean, _) => Type::Bool,
        (SchemaType::Integer, _) => Type::Int,
        (SchemaType::Number, _) => Type::Double,
        (SchemaType::String, _) => match schema.checks.format.as_str() {
            "byte" => Type::Bytes,
            "date" | "date-time" => Type::Timestamp,
            "duration" => Type::Duration,
            _ => Type::String,
        },
        (SchemaType::Array, _) => Type::list(inner(schema.items.as_deref()?, "@idx")?),
        (SchemaType::Object, AdditionalProperties::Of(of)) => {
            Type::map(Type::String, inner(of, "@elem")?)
        }
        (SchemaType::Object, _) => {
            let properties = schema.properties.iter();
            let mut fields: Vec<(String, Type)> = properties
                .filter_map(|(name, of)| {
                    let escaped = escape(name)?;
                    let of = inner(of, &escaped)?;
                    Some((escaped, of))
                })
                .collect();
            if is_resource {
                fields.extend(of_resource(name, version));
            }
            object(name, fields)
        }
    })
}

/// Returns the fields that every resource has.
fn of_resource(name: &str, version: Version) -> Vec<(String, Type)> {
    let mut fields = vec![
        ("apiVersion".to_owned(), Type::String),
        ("kind".to_owned(), Type::String),
    ];
    if let Some(of) = version.find_type("ObjectMeta") {
        let name = format!("{name}.metadata");
        let metadata = of_struct(of, &name, &mut Vec::new());
        fields.push(("metadata".to_owned(), metadata));
    }
    fields
}
