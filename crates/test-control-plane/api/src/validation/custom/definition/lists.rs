//! The fields of a schema about the identity of list elements and maps.
//!
//! Upstream: `ValidateCustomResourceDefinitionOpenAPISchema`

use serde_json::{Map, Value, json};

use super::internal;
use crate::custom::{flag, texts};
use crate::members::text;
use crate::status::FieldError;

pub(super) const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const KEYS: &str = "x-kubernetes-list-map-keys";

pub(super) fn check(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    map_type(schema, at, errors);
    list_type(schema, at, errors);
    if text(schema, LIST_TYPE) == "map" {
        map_list(schema, at, errors);
    }
    map_keys(schema, at, errors);
}

/// Requires a type under a condition.
fn type_if(schema: &Value, at: &str, of: &str, when: &str, errors: &mut Vec<FieldError>) {
    let found = text(schema, "type");
    let (field, detail) = (format!("{at}.type"), format!("must be {of} if {when}"));
    if found.is_empty() {
        errors.push(FieldError::required(field, &detail));
    } else if found != of {
        errors.push(FieldError::invalid(field, &json!(found), &detail));
    }
}

fn map_type(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(of) = schema.get(MAP_TYPE) else {
        return;
    };
    type_if(
        schema,
        at,
        "object",
        "x-kubernetes-map-type is specified",
        errors,
    );
    let names = ["atomic", "granular"];
    if !names.iter().any(|name| of == name) {
        errors.push(FieldError::not_supported(
            format!("{at}.{MAP_TYPE}"),
            of,
            &names,
        ));
    }
}

fn list_type(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let of = schema.get(LIST_TYPE);
    if of.is_some() {
        let before = errors.len();
        type_if(
            schema,
            at,
            "array",
            "x-kubernetes-list-type is specified",
            errors,
        );
        let items = &schema["items"];
        if errors.len() == before && text(schema, LIST_TYPE) == "set" && !is_atomic_item(items) {
            let required = if text(items, "type") == "array" {
                LIST_TYPE
            } else {
                MAP_TYPE
            };
            let found = items.get(LIST_TYPE).unwrap_or(&Value::Null);
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            errors.push(FieldError::invalid(
                format!("{at}.items.{required}"),
                found,
                detail,
            ));
        }
    }
    let names = ["atomic", "set", "map"];
    let field = format!("{at}.{LIST_TYPE}");
    if let Some(of) = of.filter(|of| !names.iter().any(|name| of == name)) {
        errors.push(FieldError::not_supported(field.clone(), of, &names));
    }
    if schema.get(KEYS).is_some() && of.is_none_or(|of| of != "map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match of {
            None => FieldError::required(field, detail),
            Some(of) => FieldError::invalid(field, of, detail),
        });
    }
}

/// Reports whether a set may have elements of a schema.
fn is_atomic_item(items: &Value) -> bool {
    match text(items, "type") {
        "array" => items.get(LIST_TYPE).is_none_or(|of| of == "atomic"),
        "object" => text(items, MAP_TYPE) == "atomic",
        _ => true,
    }
}

fn map_list(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let keys = texts(schema, KEYS);
    let at_keys = format!("{at}.{KEYS}");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&at_keys, detail));
    }
    let Some(items) = schema.get("items") else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{at}.items"), detail));
        return;
    };
    if !items.is_object() {
        let detail = "must only have a single schema if x-kubernetes-list-type is map";
        let shown = internal::items(items);
        errors.push(FieldError::invalid_text(
            format!("{at}.items"),
            &shown,
            detail,
        ));
        return;
    }
    let of = text(items, "type");
    if of != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(
            format!("{at}.items.type"),
            &json!(of),
            detail,
        ));
        return;
    }
    let none = Map::new();
    let properties = items["properties"].as_object().unwrap_or(&none);
    for (index, key) in keys.iter().enumerate() {
        match properties.get(key).map(|property| text(property, "type")) {
            Some("array" | "object") => {
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let field = format!("{at}.items.properties[{key}].type");
                errors.push(FieldError::invalid(field, &json!(of), detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&at_keys, &json!(keys), detail));
            }
        }
        if keys[..index].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&at_keys, &json!(keys), detail));
        }
    }
}

/// Upstream: `validateMapListKeysMapSet`
fn map_keys(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (of, items) = (text(schema, LIST_TYPE), &schema["items"]);
    if !["set", "map"].contains(&of) || !items.is_object() {
        return;
    }
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {of}");
        errors.push(FieldError::forbidden(
            format!("{at}.items.nullable"),
            &detail,
        ));
    }
    let required = texts(items, "required");
    let keys = texts(schema, KEYS).into_iter().filter(|_| of == "map");
    for key in keys {
        let Some(found) = items["properties"].get(&key) else {
            continue;
        };
        let at = format!("{at}.items.properties[{key}]");
        let start = "this property is in x-kubernetes-list-map-keys, so it";
        if !required.contains(&key) && found.get("default").is_none() {
            let detail = format!("{start} must have a default or be a required property");
            errors.push(FieldError::required(format!("{at}.default"), &detail));
        }
        if flag(found, "nullable") {
            let detail = format!("{start} cannot be nullable");
            errors.push(FieldError::forbidden(format!("{at}.nullable"), &detail));
        }
    }
}
