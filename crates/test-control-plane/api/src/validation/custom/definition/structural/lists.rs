//! The rules on `x-kubernetes-list-type`.
//!
//! Upstream: `validateListSetsAndMaps` and `validateMapKeys` of the definition's validation.

use serde_json::{Value, json};

use super::inner::type_if;
use crate::custom::{flag, texts};
use crate::members::text;
use crate::status::FieldError;

const LIST_TYPE: &str = "x-kubernetes-list-type";
const KEYS: &str = "x-kubernetes-list-map-keys";

pub(super) fn check(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let of = text(schema, LIST_TYPE);
    let keys = texts(schema, KEYS);
    match of {
        "" => {}
        "atomic" | "set" | "map" => {
            type_if(
                schema,
                at,
                "array",
                "x-kubernetes-list-type is specified",
                errors,
            );
        }
        other => {
            let names = ["atomic", "set", "map"];
            let field = format!("{at}.{LIST_TYPE}");
            errors.push(FieldError::not_supported(field, &json!(other), &names));
        }
    }
    if !keys.is_empty() && of != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        let field = format!("{at}.{LIST_TYPE}");
        if of.is_empty() {
            errors.push(FieldError::required(field, detail));
        } else {
            errors.push(FieldError::invalid(field, &json!(of), detail));
        }
    }
    let null = Value::Null;
    let items = schema.get("items").unwrap_or(&null);
    match of {
        "map" => map(items, &keys, at, errors),
        "set" => set(items, at, errors),
        _ => {}
    }
}

fn set(items: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let required = match text(items, "type") {
        "object" => "x-kubernetes-map-type",
        "array" => LIST_TYPE,
        _ => return,
    };
    if text(items, required) != "atomic"
        && !(required == LIST_TYPE && text(items, required).is_empty())
    {
        let found = items.get(required).unwrap_or(&Value::Null);
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let field = format!("{at}.items.{required}");
        errors.push(FieldError::invalid(field, found, detail));
    }
}

fn map(items: &Value, keys: &[String], at: &str, errors: &mut Vec<FieldError>) {
    let at_keys = format!("{at}.{KEYS}");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(at_keys, detail));
        return;
    }
    let of = text(items, "type");
    if of != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let field = format!("{at}.items.type");
        errors.push(FieldError::invalid(field, &json!(of), detail));
        return;
    }
    let properties = items.get("properties").and_then(Value::as_object);
    let property = |key: &str| properties.and_then(|properties| properties.get(key));
    if keys.iter().any(|key| property(key).is_none()) {
        let detail = "entries must all be names of item properties";
        errors.push(FieldError::invalid(at_keys.clone(), &json!(keys), detail));
    }
    let mut distinct = keys.to_vec();
    distinct.sort();
    distinct.dedup();
    if distinct.len() < keys.len() {
        let detail = "must not contain duplicate entries";
        errors.push(FieldError::invalid(at_keys, &json!(keys), detail));
        return;
    }
    let required = texts(items, "required");
    for key in keys {
        let Some(found) = property(key) else {
            continue;
        };
        let at = format!("{at}.items.properties[{key}]");
        let told = "this property is in x-kubernetes-list-map-keys, so it";
        if !required.contains(key) && found.get("default").is_none() {
            let detail = format!("{told} must have a default or be a required property");
            errors.push(FieldError::required(format!("{at}.default"), &detail));
        }
        if flag(found, "nullable") {
            let detail = format!("{told} cannot be nullable");
            errors.push(FieldError::forbidden(format!("{at}.nullable"), &detail));
        }
        let of = text(found, "type");
        if matches!(of, "object" | "array") {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(
                format!("{at}.type"),
                &json!(of),
                detail,
            ));
        }
    }
}
