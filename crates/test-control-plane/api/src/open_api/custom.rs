//! The schemas of custom resources, made of their definitions.
//!
//! Upstream: `BuildOpenAPIV3` of `k8s.io/apiextensions-apiserver`.

use serde_json::{Map, Value, json};

use crate::custom::{CustomResource, flag};
use crate::kinds::Kind;

/// The type of the metadata of objects.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type of the metadata of lists.
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The members of the root and of embedded resources, which definitions needn't specify.
struct Common {
    api_version: Value,
    kind: Value,
    metadata: Value,
}

impl Common {
    /// Returns the members. The type of the metadata is a reference if `schemas` has it.
    fn of(schemas: &Map<String, Value>, meta: &str) -> Self {
        let mut metadata = json!({"description": "The standard metadata."});
        if schemas.contains_key(meta) {
            metadata["allOf"] = json!([{"$ref": format!("#/components/schemas/{meta}")}]);
        } else {
            metadata["type"] = json!("object");
        }
        Self {
            api_version: json!({
                "description": "The version of the schema that the object follows.",
                "type": "string",
            }),
            kind: json!({"description": "The kind of the object.", "type": "string"}),
            metadata,
        }
    }

    fn add_to(&self, schema: &mut Map<String, Value>) {
        let properties = schema
            .entry("properties")
            .or_insert_with(|| json!({}))
            .as_object_mut();
        if let Some(properties) = properties {
            properties.insert("apiVersion".to_owned(), self.api_version.clone());
            properties.insert("kind".to_owned(), self.kind.clone());
            properties.insert("metadata".to_owned(), self.metadata.clone());
        }
    }
}

/// Adds the schemas of a custom resource and of its list.
pub(super) fn add(schemas: &mut Map<String, Value>, kind: &Kind, custom: &CustomResource) {
    let common = Common::of(schemas, OBJECT_META);
    let mut object = published(&custom.published, &common);
    if let Some(object) = object.as_object_mut() {
        common.add_to(object);
    }
    let name = model_name(kind, &kind.kind);
    let mut list = Map::new();
    list.insert(
        "description".to_owned(),
        json!(format!("{} is a list of {}", custom.list_kind, kind.kind)),
    );
    list.insert("type".to_owned(), json!("object"));
    list.insert("required".to_owned(), json!(["items"]));
    let items = json!({
        "description": "The objects.",
        "type": "array",
        "items": {"$ref": format!("#/components/schemas/{name}")},
    });
    list.insert("properties".to_owned(), json!({"items": items}));
    Common::of(schemas, LIST_META).add_to(&mut list);
    let mut list = Value::Object(list);
    for (schema, named) in [(&mut object, &*kind.kind), (&mut list, &*custom.list_kind)] {
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": kind.group, "version": kind.version, "kind": named}]);
        if !kind.fields.is_empty() {
            let fields = kind.fields.iter();
            let fields: Vec<Value> = fields
                .map(|field| json!({"fieldPath": field.label}))
                .collect();
            schema["x-kubernetes-selectable-fields"] = json!(fields);
        }
    }
    schemas.insert(model_name(kind, &custom.list_kind), list);
    schemas.insert(name, object);
}

/// Returns the name of a schema, such as `com.example.v1.Widget`.
fn model_name(kind: &Kind, name: &str) -> String {
    let mut labels: Vec<&str> = kind.group.rsplit('.').collect();
    labels.extend([&kind.version, name]);
    labels.join(".")
}

/// Returns a schema as the document shows it.
fn published(schema: &Value, common: &Common) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut shown = members.clone();
    if let Some(properties) = shown.get_mut("properties").and_then(Value::as_object_mut) {
        for inner in properties.values_mut() {
            *inner = published(inner, common);
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = shown.get_mut(name) {
            *inner = published(inner, common);
        }
    }
    if flag(schema, "x-kubernetes-int-or-string") && !shown.contains_key("anyOf") {
        let types = json!([{"type": "integer"}, {"type": "string"}]);
        shown.insert("anyOf".to_owned(), types);
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        common.add_to(&mut shown);
        let required = shown.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            for name in ["kind", "apiVersion"] {
                if !required.iter().any(|known| known == name) {
                    required.push(json!(name));
                }
            }
        }
    }
    shown.into()
}
