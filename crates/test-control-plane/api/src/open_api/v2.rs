//! The `OpenAPI` v2 document: all resources in one, converted from those in v3.
//!
//! Upstream: `k8s.io/kube-openapi/pkg/builder`

pub mod protobuf;

use serde_json::{Map, Value, json};

/// The place of schemas in v3, and in v2.
const SCHEMAS: [&str; 2] = ["#/components/schemas/", "#/definitions/"];

/// The fields of schemas that v2 doesn't have.
const UNKNOWN: [&str; 4] = ["anyOf", "not", "nullable", "oneOf"];

/// The fields of schemas that describe the value's content. Upstream drops them for values that
/// may be null, which v2 can't express.
const OF_CONTENT: [&str; 4] = ["additionalProperties", "items", "properties", "type"];

/// Converts documents in v3 to one in v2. `version` is that of Kubernetes.
pub(super) fn of(documents: impl Iterator<Item = Value>, version: &str) -> Value {
    let mut paths = Map::new();
    let mut definitions = Map::new();
    for mut document in documents {
        for (path, item) in members(document["paths"].take()) {
            paths.insert(path, path_item(item));
        }
        for (name, mut schema) in members(document["components"]["schemas"].take()) {
            convert(&mut schema);
            // Types that several groups share are equal but for the kinds they stand for.
            definitions.entry(name).or_insert(schema);
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "definitions": definitions,
    })
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn path_item(item: Value) -> Value {
    let mut item = members(item);
    for (name, value) in &mut item {
        if name == "parameters" {
            inline(value);
        } else {
            operation(value);
        }
    }
    item.into()
}

fn operation(operation: &mut Value) {
    let mut parameters = operation["parameters"].take();
    inline(&mut parameters);
    let mut parameters = match parameters {
        Value::Array(parameters) => parameters,
        _ => Vec::new(),
    };
    let body = operation["requestBody"].take();
    let (consumes, schema) = content(&body["content"]);
    if let Some(schema) = schema {
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if body["required"] == true {
            parameter["required"] = json!(true);
        }
        parameters.insert(0, parameter);
    }
    let mut produces = Vec::new();
    for response in operation["responses"].as_object_mut().into_iter().flatten() {
        let (media_types, schema) = content(&response.1["content"].take());
        if let Some(schema) = schema {
            response.1["schema"] = schema;
            produces = media_types;
        }
        if let Some(response) = response.1.as_object_mut() {
            response.remove("content");
        }
    }
    let consumes = if consumes.is_empty() {
        vec!["*/*".to_owned()]
    } else {
        consumes
    };
    if let Some(members) = operation.as_object_mut() {
        members.remove("requestBody");
        members.remove("parameters");
        if !parameters.is_empty() {
            members.insert("parameters".to_owned(), parameters.into());
        }
        members.insert("consumes".to_owned(), json!(consumes));
        members.insert("produces".to_owned(), json!(produces));
        members.insert("schemes".to_owned(), json!(["https"]));
    }
}

/// Returns the media types of a body, and its schema.
fn content(content: &Value) -> (Vec<String>, Option<Value>) {
    let contents = content.as_object().into_iter().flatten();
    let media_types = contents.clone().map(|(media_type, _)| media_type.clone());
    let mut schema = contents
        .clone()
        .next()
        .map(|(_, body)| body["schema"].clone());
    schema.iter_mut().for_each(convert);
    (media_types.collect(), schema)
}

/// Replaces the schemas of parameters by the fields of a v2 parameter.
fn inline(parameters: &mut Value) {
    for parameter in parameters.as_array_mut().into_iter().flatten() {
        let schema = parameter["schema"].take();
        if let Some(parameter) = parameter.as_object_mut() {
            parameter.remove("schema");
            parameter.extend(members(schema));
        }
    }
}

/// Converts a schema and those inside.
fn convert(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::String(reference)) = members.get_mut("$ref") {
        *reference = reference.replace(SCHEMAS[0], SCHEMAS[1]);
    }
    // A reference with a description has this form in v3.
    if let Some(Value::Array(all)) = members.remove("allOf")
        && let [Value::Object(only)] = all.as_slice()
        && let Some(Value::String(reference)) = only.get("$ref")
    {
        let reference = reference.replace(SCHEMAS[0], SCHEMAS[1]);
        members.insert("$ref".to_owned(), json!(reference));
    }
    let is_scalar =
        members.contains_key("oneOf") && !members.contains_key("x-kubernetes-int-or-string");
    if is_scalar && !members.contains_key("type") {
        // Quantities, and numbers with names.
        members.insert("type".to_owned(), json!("string"));
    }
    if members.get("nullable") == Some(&json!(true)) {
        members.retain(|name, _| !OF_CONTENT.contains(&name.as_str()));
    }
    members.retain(|name, _| !UNKNOWN.contains(&name.as_str()));
    for (name, value) in members {
        match name.as_str() {
            "items" | "additionalProperties" => convert(value),
            "properties" => {
                let properties = value.as_object_mut().into_iter().flatten();
                properties.for_each(|(_, schema)| convert(schema));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_lose_what_v2_lacks() {
        for (v3, v2) in [
            (
                json!({"allOf": [{"$ref": "#/components/schemas/A"}], "description": "d"}),
                json!({"$ref": "#/definitions/A", "description": "d"}),
            ),
            (
                json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}),
                json!({"type": "string", "format": "int-or-string"}),
            ),
            (
                json!({"x-kubernetes-int-or-string": true, "anyOf": [], "oneOf": []}),
                json!({"x-kubernetes-int-or-string": true}),
            ),
            (
                json!({"type": "object", "nullable": true, "properties": {"a": {}}, "title": "t"}),
                json!({"title": "t"}),
            ),
            (
                json!({"type": "array", "items": {"$ref": "#/components/schemas/A"}}),
                json!({"type": "array", "items": {"$ref": "#/definitions/A"}}),
            ),
        ] {
            let mut converted = v3.clone();
            convert(&mut converted);
            assert_eq!(converted, v2, "{v3}");
        }
    }

    #[test]
    fn operations_have_parameters_for_bodies() {
        let document = json!({
            "paths": {"/a": {
                "parameters": [{"name": "pretty", "in": "query", "schema": {"type": "string"}}],
                "post": {
                    "requestBody": {
                        "required": true,
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    },
                    "responses": {
                        "200": {"description": "OK", "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/A"}},
                        }},
                        "401": {"description": "Unauthorized"},
                    },
                },
            }},
            "components": {"schemas": {"A": {"type": "object"}}},
        });
        let expected = json!({
            "swagger": "2.0", "info": {"title": "Kubernetes", "version": "1.36"},
            "definitions": {"A": {"type": "object"}},
            "paths": {"/a": {
                "parameters": [{"name": "pretty", "in": "query", "type": "string"}],
                "post": {
                    "consumes": ["application/json"], "produces": ["application/json"],
                    "schemes": ["https"],
                    "parameters": [{
                        "name": "body", "in": "body", "required": true, "schema": {"type": "object"},
                    }],
                    "responses": {
                        "200": {"description": "OK", "schema": {"$ref": "#/definitions/A"}},
                        "401": {"description": "Unauthorized"},
                    },
                },
            }},
        });
        assert_eq!(of(std::iter::once(document), "1.36"), expected);
    }
}
