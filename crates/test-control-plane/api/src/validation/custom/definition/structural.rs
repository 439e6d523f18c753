//! The rules that make a schema structural.
//!
//! Upstream: `ValidateStructural` and `specStandardValidatorV3` of `k8s.io/apiextensions-apiserver`.

pub(super) mod inner;
mod lists;
mod values;

use serde_json::{Map, Value, json};

use inner::{JUNCTORS, each_inner, type_if};

use crate::custom::{SchemaType, flag};
use crate::members::text;
use crate::status::FieldError;

/// Members that only the structure of a schema may have, not its value validations.
const STRUCTURE: [&str; 13] = [
    "additionalProperties",
    "default",
    "description",
    "nullable",
    "title",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Members that are never supported.
const UNSUPPORTED: [&str; 4] = ["$ref", "definitions", "dependencies", "patternProperties"];

/// The place of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// Checks the schema of a version.
pub(super) fn check_root(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let before = errors.len();
    supported(schema, at, errors);
    if errors.len() > before {
        return;
    }
    check(schema, at, Level::Root, errors);
    if let Some(metadata) = schema.pointer("/properties/metadata") {
        check_metadata(metadata, &format!("{at}.properties[metadata]"), errors);
    }
    for name in ["apiVersion", "kind"] {
        let of = schema.pointer(&format!("/properties/{name}/type"));
        if let Some(of) = of.filter(|of| *of != "string") {
            let field = format!("{at}.properties[{name}].type");
            errors.push(FieldError::invalid(field, of, "must be string"));
        }
    }
    if errors.len() == before {
        values::check_defaults(schema, at, errors);
    }
}

/// Rejects what no schema may have.
fn supported(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for name in UNSUPPORTED {
        if schema.get(name).is_some_and(|found| !found.is_null()) {
            let detail = format!("{name} is not supported");
            errors.push(FieldError::forbidden(format!("{at}.{name}"), &detail));
        }
    }
    if flag(schema, "uniqueItems") {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{at}.uniqueItems"), detail));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{at}.items"), detail));
    }
    let of = text(schema, "type");
    if !of.is_empty() && SchemaType::of_name(of).is_none() {
        let names = SchemaType::ALL.map(SchemaType::name);
        let field = format!("{at}.type");
        errors.push(FieldError::not_supported(field, &json!(of), &names));
    }
    #[cfg(not(feature = "cel"))]
    no_rules(schema, at, errors);
    each_inner(schema, at, &mut |inner, at| supported(inner, at, errors));
}

#[cfg(not(feature = "cel"))]
fn no_rules(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let rules = schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array);
    if rules.is_some_and(|rules| !rules.is_empty()) {
        let detail = "this build does not support CEL rules: enable the feature `cel` of \
                      kube-test-control-plane, or remove x-kubernetes-validations";
        let field = format!("{at}.x-kubernetes-validations");
        errors.push(FieldError::forbidden(field, detail));
    }
}

/// Upstream: `validateStructuralInvariants` and `validateStructuralCompleteness`
fn check(schema: &Value, at: &str, level: Level, errors: &mut Vec<FieldError>) {
    value_validations(schema, at, errors);
    let member = |name: &str| schema.get(name).filter(|found| found.is_object());
    let properties = member("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        check(
            inner,
            &format!("{at}.properties[{name}]"),
            Level::Field,
            errors,
        );
    }
    if let Some(inner) = member("additionalProperties") {
        check(
            inner,
            &format!("{at}.additionalProperties"),
            Level::Field,
            errors,
        );
    }
    if let Some(inner) = member("items") {
        check(inner, &format!("{at}.items"), Level::Item, errors);
    }
    let has_properties = properties.is_some_and(|properties| !properties.is_empty());
    let additional = schema
        .get("additionalProperties")
        .is_some_and(|found| found.is_object() || *found == true);
    if has_properties && additional {
        let detail = "additionalProperties and properties are mutual exclusive";
        let field = format!("{at}.additionalProperties");
        errors.push(FieldError::forbidden(field, detail));
    }
    extensions(schema, at, properties, errors);
    lists::check(schema, at, errors);
    of_type(schema, at, level, errors);
    values::check(schema, at, errors);
}

/// Rejects structure inside of junctors.
fn value_validations(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let is_open = flag(schema, "x-kubernetes-int-or-string");
    let mut inner = |inner: &Value, at: &str| forbidden_structure(inner, at, errors);
    for name in JUNCTORS {
        let list = schema.get(name).and_then(Value::as_array);
        for (index, found) in list.into_iter().flatten().enumerate() {
            let at = format!("{at}.{name}[{index}]");
            if is_open && name == "anyOf" && is_int_or_string(schema) {
                continue;
            }
            let mut found = found.clone();
            let is_first = name == "allOf" && index == 0;
            if is_open && is_first && is_int_or_string(&found) {
                found["anyOf"].take();
            }
            inner(&found, &at);
        }
    }
    if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
        inner(not, &format!("{at}.not"));
    }
}

/// Returns true for the choice that goes with `x-kubernetes-int-or-string`.
///
/// Upstream: `isIntOrStringAnyOfPattern` and `isIntOrStringAllOfPattern`
fn is_int_or_string(schema: &Value) -> bool {
    schema.get("anyOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

fn forbidden_structure(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for name in STRUCTURE {
        let found = schema.get(name);
        let is_set = found.is_some_and(|found| match found {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => true,
        });
        if is_set {
            let detail = if name == "default" {
                "must be undefined to be structural"
            } else {
                "must be empty to be structural"
            };
            errors.push(FieldError::forbidden(format!("{at}.{name}"), detail));
        }
    }
    let is_structure = |at: &str| at.ends_with("additionalProperties");
    each_inner(schema, at, &mut |inner, at| {
        if !is_structure(at) {
            forbidden_structure(inner, at, errors);
        }
    });
}

fn extensions(
    schema: &Value,
    at: &str,
    properties: Option<&Map<String, Value>>,
    errors: &mut Vec<FieldError>,
) {
    let preserves = "x-kubernetes-preserve-unknown-fields";
    if schema.get(preserves) == Some(&json!(false)) {
        let field = format!("{at}.{preserves}");
        let detail = "must be true or undefined";
        errors.push(FieldError::invalid(field, &json!(false), detail));
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        let is_empty = properties.is_none_or(Map::is_empty);
        if is_empty && !flag(schema, preserves) {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                          x-kubernetes-preserve-unknown-fields";
            errors.push(FieldError::required(format!("{at}.properties"), detail));
        }
        type_if(
            schema,
            at,
            "object",
            "x-kubernetes-embedded-resource is true",
            errors,
        );
    }
    match text(schema, "x-kubernetes-map-type") {
        "" => {}
        "atomic" | "granular" => {
            type_if(
                schema,
                at,
                "object",
                "x-kubernetes-map-type is specified",
                errors,
            );
        }
        other => {
            let field = format!("{at}.x-kubernetes-map-type");
            let names = ["atomic", "granular"];
            errors.push(FieldError::not_supported(field, &json!(other), &names));
        }
    }
}

fn of_type(schema: &Value, at: &str, level: Level, errors: &mut Vec<FieldError>) {
    let (of, field) = (text(schema, "type"), format!("{at}.type"));
    let is_open = flag(schema, "x-kubernetes-int-or-string")
        || flag(schema, "x-kubernetes-preserve-unknown-fields");
    match (level, of) {
        (Level::Root, "") => {
            let detail = "must not be empty at the root";
            errors.push(FieldError::required(field, detail));
        }
        (Level::Root, found) if found != "object" => {
            let detail = "must be object at the root";
            errors.push(FieldError::invalid(field, &json!(found), detail));
        }
        (Level::Field, "") if !is_open => {
            let detail = "must not be empty for specified object fields";
            errors.push(FieldError::required(field, detail));
        }
        (Level::Item, "") if !is_open => {
            let detail = "must not be empty for specified array items";
            errors.push(FieldError::required(field, detail));
        }
        (_, "array") if schema.get("items").is_none_or(|items| !items.is_object()) => {
            errors.push(FieldError::required(
                format!("{at}.items"),
                "must be specified",
            ));
        }
        _ => {}
    }
}

/// Upstream: `validateMetadata` in `forbiddenObjectMeta`
fn check_metadata(metadata: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let of = metadata.get("type").unwrap_or(&Value::Null);
    if *of != "object" {
        errors.push(FieldError::invalid(
            format!("{at}.type"),
            of,
            "must be object",
        ));
        return;
    }
    let properties = metadata.get("properties").and_then(Value::as_object);
    let mut properties = properties.into_iter().flatten();
    if properties
        .clone()
        .any(|(name, _)| name != "name" && name != "generateName")
    {
        let detail = "must not specify anything other than name and generateName, but metadata is \
                      implicitly specified";
        errors.push(FieldError::forbidden(at, detail));
    }
    if let Some((name, _)) = properties.find(|(_, inner)| inner.get("default").is_some()) {
        let field = format!("{at}.properties[{name}].default");
        let detail = "must not be set in top-level metadata";
        errors.push(FieldError::forbidden(field, detail));
    }
}
