//! Custom resource schemas generated from CRDs.
//!
//! Upstream: `BuildOpenAPIV3` of `k8s.io/apiextensions-apiserver`.

use serde_json::{Map, Value, json};

use crate::custom::{CustomResource, flag};
use crate::kinds::Kind;

/// The fields of schemas that the documents show.
///
/// Upstream: `ToKubeOpenAPI` of `Structural`
const SHOWN: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// The page with the conventions of the API.
macro_rules! conventions {
    ($text:literal, $section:literal) => {
        concat!(
            $text,
            " More info: https://git.k8s.io/community/contributors/devel/sig-architecture/\
             api-conventions.md",
            $section
        )
    };
}

/// The descriptions of the fields that definitions needn't specify.
struct Common {
    api_version: &'static str,
    kind: &'static str,
    metadata: &'static str,
    /// The type of the metadata.
    meta: &'static str,
}

/// Those of objects.
const OF_OBJECTS: Common = Common {
    api_version: conventions!(
        "APIVersion defines the versioned schema of this representation of an object. Servers \
         should convert recognized schemas to the latest internal value, and may reject \
         unrecognized values.",
        "#resources"
    ),
    kind: conventions!(
        "Kind is a string value representing the REST resource this object represents. Servers \
         may infer this from the endpoint the client submits requests to. Cannot be updated. In \
         CamelCase.",
        "#types-kinds"
    ),
    metadata: conventions!("Standard object's metadata.", "#metadata"),
    meta: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
};

/// Those of lists.
const OF_LISTS: Common = Common {
    metadata: conventions!("Standard list metadata.", "#types-kinds"),
    meta: "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    ..OF_OBJECTS
};

/// Those of embedded resources.
const OF_EMBEDDED: Common = Common {
    api_version: conventions!(
        "apiVersion defines the versioned schema of this representation of an object.",
        "#resources"
    ),
    kind: conventions!(
        "kind is a string value representing the type of this object. In CamelCase.",
        "#types-kinds"
    ),
    ..OF_OBJECTS
};

impl Common {
    /// Adds the fields. The type of the metadata is a reference if `schemas` has it.
    fn add_to(&self, schema: &mut Map<String, Value>, schemas: &Map<String, Value>) {
        let text = |description: &str| json!({"description": description, "type": "string"});
        let mut metadata = json!({"description": self.metadata});
        if schemas.contains_key(self.meta) {
            let reference = format!("#/components/schemas/{}", self.meta);
            metadata["allOf"] = json!([{"$ref": reference}]);
        } else {
            metadata["type"] = json!("object");
        }
        let properties = schema
            .entry("properties")
            .or_insert_with(|| json!({}))
            .as_object_mut();
        if let Some(properties) = properties {
            properties.insert("apiVersion".to_owned(), text(self.api_version));
            properties.insert("kind".to_owned(), text(self.kind));
            properties.insert("metadata".to_owned(), metadata);
        }
    }
}

/// Adds the schemas of a custom resource and of its list.
pub(super) fn add(schemas: &mut Map<String, Value>, kind: &Kind, custom: &CustomResource) {
    let mut object = published(&custom.published, schemas);
    if let Some(object) = object.as_object_mut() {
        OF_OBJECTS.add_to(object, schemas);
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
        "description": format!(conventions!("List of {}.", ""), kind.plural),
        "type": "array",
        "items": {"$ref": format!("#/components/schemas/{name}")},
    });
    list.insert("properties".to_owned(), json!({"items": items}));
    OF_LISTS.add_to(&mut list, schemas);
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
fn published(schema: &Value, schemas: &Map<String, Value>) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut shown = members.clone();
    shown.retain(|name, _| SHOWN.contains(&name.as_str()));
    if let Some(properties) = shown.get_mut("properties").and_then(Value::as_object_mut) {
        for inner in properties.values_mut() {
            *inner = published(inner, schemas);
        }
    }
    for name in ["items", "additionalProperties", "not"] {
        if let Some(inner) = shown.get_mut(name) {
            *inner = published(inner, schemas);
        }
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let list = shown.get_mut(name).and_then(Value::as_array_mut);
        for inner in list.into_iter().flatten() {
            *inner = published(inner, schemas);
        }
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        unfold(&mut shown);
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        OF_EMBEDDED.add_to(&mut shown, schemas);
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

/// Adds the two types of a value that is an integer or a string, unless they exist.
///
/// Upstream: `Unfold` of `Structural`
fn unfold(shown: &mut Map<String, Value>) {
    let types = json!([{"type": "integer"}, {"type": "string"}]);
    let Some(any_of) = shown.get("anyOf") else {
        let has_types = shown
            .get("allOf")
            .and_then(|all_of| all_of.pointer("/0/anyOf"))
            .is_some_and(|found| *found == types);
        if !has_types {
            shown.insert("anyOf".to_owned(), types);
        }
        return;
    };
    if *any_of == types {
        return;
    }
    let all_of = shown.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all_of) = all_of.as_array_mut()
        && all_of.first().and_then(|first| first.get("anyOf")) != Some(&types)
    {
        all_of.insert(0, json!({"anyOf": types}));
    }
}
