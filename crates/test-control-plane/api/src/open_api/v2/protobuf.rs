//! The protobuf form of an `OpenAPI` v2 document, which kubectl asks for.
//!
//! Upstream: `OpenAPIv2.proto` of `github.com/google/gnostic-models`

use serde_json::Value;

use crate::go::wire;

/// Encodes a document.
pub fn encode(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, 1, &document["swagger"]);
    wire::message(&mut out, 2, |out| {
        text(out, 1, &document["info"]["title"]);
        text(out, 2, &document["info"]["version"]);
    });
    wire::message(&mut out, 8, |out| {
        named(out, 2, &document["paths"], path_item);
    });
    wire::message(&mut out, 9, |out| {
        named(out, 1, &document["definitions"], schema);
    });
    out
}

/// Appends each field as a message with its name and a message with its value.
fn named(out: &mut Vec<u8>, number: u32, object: &Value, write: fn(&mut Vec<u8>, &Value)) {
    for (name, value) in object.as_object().into_iter().flatten() {
        wire::message(out, number, |out| {
            wire::bytes(out, 1, name);
            wire::message(out, 2, |out| write(out, value));
        });
    }
}

fn path_item(out: &mut Vec<u8>, item: &Value) {
    for (number, method) in [
        (2, "get"),
        (3, "put"),
        (4, "post"),
        (5, "delete"),
        (8, "patch"),
    ] {
        if let Some(value) = item.get(method) {
            wire::message(out, number, |out| operation(out, value));
        }
    }
    parameters(out, 9, item);
}

fn operation(out: &mut Vec<u8>, operation: &Value) {
    texts(out, 1, operation.get("tags"));
    member(out, 3, operation, "description");
    member(out, 5, operation, "operationId");
    texts(out, 6, operation.get("produces"));
    texts(out, 7, operation.get("consumes"));
    parameters(out, 8, operation);
    wire::message(out, 9, |out| {
        let responses = operation.get("responses").unwrap_or(&Value::Null);
        named(out, 1, responses, |out, response| {
            wire::message(out, 1, |out| {
                member(out, 1, response, "description");
                if let Some(value) = response.get("schema") {
                    wire::message(out, 2, |out| {
                        wire::message(out, 1, |out| schema(out, value));
                    });
                }
            });
        });
    });
    texts(out, 10, operation.get("schemes"));
    extensions(out, 13, operation);
}

fn parameters(out: &mut Vec<u8>, number: u32, holder: &Value) {
    for parameter in list(holder.get("parameters")) {
        wire::message(out, number, |out| {
            wire::message(out, 1, |out| match parameter.get("schema") {
                Some(value) => wire::message(out, 1, |out| {
                    member(out, 1, parameter, "description");
                    member(out, 2, parameter, "name");
                    member(out, 3, parameter, "in");
                    flag(out, 4, parameter, "required");
                    wire::message(out, 5, |out| schema(out, value));
                }),
                None => wire::message(out, 2, |out| simple_parameter(out, parameter)),
            });
        });
    }
}

/// Appends a parameter of a path or of a query.
fn simple_parameter(out: &mut Vec<u8>, parameter: &Value) {
    let is_in_path = parameter.get("in").is_some_and(|place| place == "path");
    // Parameters of a query have one field more in the middle.
    let (number, shift) = if is_in_path { (4, 0) } else { (3, 1) };
    wire::message(out, number, |out| {
        flag(out, 1, parameter, "required");
        member(out, 2, parameter, "in");
        member(out, 3, parameter, "description");
        member(out, 4, parameter, "name");
        member(out, 5 + shift, parameter, "type");
        flag(out, 19 + shift, parameter, "uniqueItems");
    });
}

fn schema(out: &mut Vec<u8>, of: &Value) {
    for (number, name) in [
        (1, "$ref"),
        (2, "format"),
        (3, "title"),
        (4, "description"),
        (13, "pattern"),
    ] {
        member(out, number, of, name);
    }
    if let Some(value) = of.get("default") {
        wire::message(out, 5, |out| any(out, value));
    }
    for (number, name) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        if let Some(value) = of.get(name).and_then(Value::as_f64) {
            wire::double(out, number, value);
        }
    }
    for (number, name) in [
        (8, "exclusiveMaximum"),
        (10, "exclusiveMinimum"),
        (16, "uniqueItems"),
    ] {
        flag(out, number, of, name);
    }
    for (number, name) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        if let Some(value) = of.get(name).and_then(Value::as_i64) {
            wire::number(out, number, value);
        }
    }
    texts(out, 19, of.get("required"));
    for value in list(of.get("enum")) {
        wire::message(out, 20, |out| any(out, value));
    }
    match of.get("additionalProperties") {
        Some(Value::Bool(value)) => {
            wire::message(out, 21, |out| wire::number(out, 2, i64::from(*value)));
        }
        Some(value) => wire::message(out, 21, |out| {
            wire::message(out, 1, |out| schema(out, value));
        }),
        None => {}
    }
    if let Some(Value::String(name)) = of.get("type") {
        wire::message(out, 22, |out| wire::bytes(out, 1, name));
    }
    if let Some(value) = of.get("items") {
        wire::message(out, 23, |out| {
            wire::message(out, 1, |out| schema(out, value));
        });
    }
    if let Some(value) = of.get("properties") {
        wire::message(out, 25, |out| named(out, 1, value, schema));
    }
    extensions(out, 31, of);
}

/// Appends the fields that Kubernetes adds to the specification.
fn extensions(out: &mut Vec<u8>, number: u32, holder: &Value) {
    let members = holder.as_object().into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| name.starts_with("x-")) {
        wire::message(out, number, |out| {
            wire::bytes(out, 1, name);
            wire::message(out, 2, |out| any(out, value));
        });
    }
}

/// Appends any value, as YAML.
fn any(out: &mut Vec<u8>, value: &Value) {
    wire::bytes(out, 2, value.to_string());
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn member(out: &mut Vec<u8>, number: u32, holder: &Value, name: &str) {
    text(out, number, holder.get(name).unwrap_or(&Value::Null));
}

fn text(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
        wire::bytes(out, number, text);
    }
}

fn texts(out: &mut Vec<u8>, number: u32, value: Option<&Value>) {
    for text in list(value).filter_map(Value::as_str) {
        wire::bytes(out, number, text);
    }
}

fn flag(out: &mut Vec<u8>, number: u32, holder: &Value, name: &str) {
    if holder.get(name).is_some_and(|value| value == true) {
        wire::number(out, number, 1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_have_the_numbers_of_the_specification() {
        let document = json!({
            "swagger": "2.0",
            "info": {"title": "t", "version": "1"},
            "paths": {"/a": {"get": {
                "operationId": "o",
                "parameters": [
                    {"name": "q", "in": "query", "type": "string", "uniqueItems": true},
                    {"name": "body", "in": "body", "required": true, "schema": {}},
                ],
                "x-a": {"b": 1},
            }}},
            "definitions": {"D": {"type": "object", "minLength": 2, "pattern": "p"}},
        });
        let encoded = encode(&document);
        assert!(encoded.starts_with(b"\x0a\x032.0\x12\x06\x0a\x01t\x12\x011\x42"));
        let holds = |part: &[u8]| encoded.windows(part.len()).any(|window| window == part);
        for part in [
            &b"\x0a\x02/a\x12"[..],
            b"\x2a\x01o",
            b"\x12\x05query\x22\x01q\x32\x06string\xa0\x01\x01",
            b"\x12\x04body\x1a\x04body\x20\x01\x2a\x00",
            b"\x6a\x10\x0a\x03x-a\x12\x09\x12\x07{\"b\":1}",
            b"\x0a\x01D\x12\x10\x6a\x01p\x60\x02\xb2\x01\x08\x0a\x06object",
        ] {
            assert!(holds(part), "{part:?} in {encoded:?}");
        }
    }
}
