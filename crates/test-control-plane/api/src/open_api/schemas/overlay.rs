//! Schema details that the generated types lack: merge strategies of lists and maps, default
//! values, the two union types, and fields of later versions.

use kube_apimachinery::schema::{
    Field, Kind, PatchStrategy, Shape, Topology, Type, Version, find_type,
};
use serde_json::{Map, Value, json};

use super::enums::{self, EnumValue};

/// The fields with a marker for the default 0, which they have in no other way.
const MARKED: &[(&str, &str)] = &[("ScaleSpec", "replicas")];

/// Adds the missing details of a version to all schemas.
pub(super) fn apply(schemas: &mut Map<String, Value>, version: Version) {
    for (name, schema) in schemas {
        let Some(schema) = schema.as_object_mut() else {
            continue;
        };
        match name.as_str() {
            "io.k8s.apimachinery.pkg.api.resource.Quantity" => {
                one_of(schema, "string", "number");
            }
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => {
                one_of(schema, "integer", "string");
                schema.insert("format".to_owned(), json!("int-or-string"));
            }
            _ => {
                if let Some(found) = type_of(name, version) {
                    describe(schema, found);
                }
            }
        }
    }
}

/// Returns the schema type for a name such as `io.k8s.api.events.v1.Event`.
fn type_of(name: &str, version: Version) -> Option<&'static Type> {
    let own = name.rsplit('.').next()?;
    let group = name.strip_prefix("io.k8s.api.");
    let group = group.and_then(|rest| rest.split('.').next());
    let in_group = group.and_then(|group| version.find_type(&format!("{group}/{own}")));
    in_group.or_else(|| version.find_type(own))
}

fn one_of(schema: &mut Map<String, Value>, first: &str, second: &str) {
    schema.remove("x-kubernetes-int-or-string");
    schema.insert(
        "oneOf".to_owned(),
        json!([{"type": first}, {"type": second}]),
    );
}

fn describe(schema: &mut Map<String, Value>, of: &Type) {
    if of.atomic {
        schema.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
    }
    // All objects have metadata, but clients may omit it.
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "metadata");
        if required.is_empty() {
            schema.remove("required");
        }
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    let older = find_type(of.name);
    for field in &of.fields {
        if older.is_some_and(|older| older.field(field.name).is_none()) {
            let property = properties.entry(field.name);
            property.or_insert_with(|| member(field));
        }
    }
    for (name, property) in properties {
        if let Some(field) = of.field(name)
            && let Some(property) = property.as_object_mut()
        {
            describe_member(property, field, of.version);
            if MARKED.contains(&(of.name, field.name)) {
                property.insert("default".to_owned(), json!(0));
            }
        }
    }
}

/// Returns the plain schema of a field.
fn member(field: &Field) -> Value {
    let value = match field.kind {
        Kind::Int32 => json!({"type": "integer", "format": "int32"}),
        Kind::Int64 => json!({"type": "integer", "format": "int64"}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Struct(_) => json!({"type": "object"}),
        _ => json!({"type": "string"}),
    };
    match field.shape {
        Shape::Plain | Shape::Pointer => value,
        Shape::List => json!({"type": "array", "items": value}),
        Shape::Map => json!({"type": "object", "additionalProperties": value}),
    }
}

fn describe_member(property: &mut Map<String, Value>, field: &Field, version: Version) {
    let mut say = |name: &str, value: Value| {
        property.insert(format!("x-kubernetes-{name}"), value);
    };
    match (field.shape, field.topology()) {
        (Shape::List, Topology::Atomic) => say("list-type", json!("atomic")),
        (_, Topology::Set) => say("list-type", json!("set")),
        (_, Topology::Keyed(keys)) => {
            let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
            say("list-map-keys", json!(names));
            say("list-type", json!("map"));
        }
        (Shape::Map, Topology::Atomic) => say("map-type", json!("atomic")),
        (Shape::Plain | Shape::Pointer, Topology::Atomic)
            if field.object_type().is_some_and(|found| !found.atomic) =>
        {
            say("map-type", json!("atomic"));
        }
        _ => {}
    }
    let strategy = match (field.shape, field.patch_strategy()) {
        (_, PatchStrategy::MergeBy(key)) => {
            say("patch-merge-key", json!(key));
            Some("merge")
        }
        (Shape::List, PatchStrategy::Merge) => Some("merge"),
        (Shape::Plain | Shape::Pointer, PatchStrategy::Replace)
            if field.object_type().is_some() =>
        {
            Some("replace")
        }
        _ => None,
    };
    let strategy = match (strategy, field.retain_keys) {
        (Some(strategy), true) => Some(format!("{strategy},retainKeys")),
        (Some(strategy), false) => Some(strategy.to_owned()),
        (None, true) => Some("retainKeys".to_owned()),
        (None, false) => None,
    };
    if let Some(strategy) = strategy {
        say("patch-strategy", json!(strategy));
    }
    if let Some(default) = default_of(field) {
        property.insert("default".to_owned(), default);
    }
    if let Kind::String(go_type) = field.kind
        && let Some(values) = enums::values(go_type, version)
    {
        name_values(property, &values);
    }
}

/// Lists the allowed values of a field or of its elements.
fn name_values(property: &mut Map<String, Value>, values: &[EnumValue]) {
    let line = |value: &EnumValue| match (value.name, value.meaning) {
        (name, "") => format!("\n - `{name:?}`"),
        (name, meaning) => format!("\n - `{name:?}` {meaning}"),
    };
    let lines: Vec<String> = values.iter().map(line).collect();
    let suffix = format!("\n\nPossible enum values:{}", lines.concat());
    if let Some(Value::String(description)) = property.get_mut("description") {
        description.push_str(&suffix);
    }
    let holder = match property.get_mut("items").and_then(Value::as_object_mut) {
        Some(items) => items,
        None => property,
    };
    let names: Vec<&str> = values.iter().map(|value| value.name).collect();
    holder.insert("enum".to_owned(), json!(names));
}

/// Returns a field's default.
fn default_of(field: &Field) -> Option<Value> {
    if field.shape != Shape::Plain {
        return None;
    }
    let is_object = matches!(field.kind, Kind::Struct(_));
    (is_object || field.always)
        .then(|| zero(field.kind))
        .flatten()
}

/// Returns Go's zero value of a type, where schemas show it.
fn zero(kind: Kind) -> Option<Value> {
    match kind {
        Kind::String(_) => Some(json!("")),
        Kind::Int32 | Kind::Int64 | Kind::Float => Some(json!(0)),
        Kind::Bool => Some(json!(false)),
        Kind::Struct(_) | Kind::Quantity | Kind::IntOrString | Kind::Time | Kind::MicroTime => {
            Some(json!({}))
        }
        Kind::Bytes | Kind::Raw | Kind::Json | Kind::Strings | Kind::Either(..) => None,
    }
}
