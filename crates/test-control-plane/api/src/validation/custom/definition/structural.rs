//! The rules that make a schema structural.
//!
//! Upstream: `NewStructural` and `ValidateStructural` of `k8s.io/apiextensions-apiserver`.

use serde_json::{Map, Value, json};

use crate::custom::flag;
use crate::go::pattern;
use crate::members::{list, text};
use crate::status::FieldError;

const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// Fields that structural schemas don't support.
const UNSUPPORTED: [&str; 7] = [
    "id",
    "$schema",
    "$ref",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
];

/// Fields that only the structure of a schema may have, not its value validations, with the value
/// that they must have instead.
const STRUCTURE: [(&str, &str); 12] = [
    ("type", "empty"),
    ("additionalProperties", "undefined"),
    ("default", "undefined"),
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    (PRESERVES, "false"),
    (EMBEDDED, "false"),
    (INT_OR_STRING, "false"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
];

/// The place of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// Returns the errors of a schema, sorted.
///
/// # Errors
///
/// The reason why it has no structure.
pub(super) fn errors(schema: &Value, at: &str) -> Result<Vec<FieldError>, String> {
    read(schema)?;
    let mut errors = Vec::new();
    invariants(schema, at, Level::Root, &mut errors);
    completeness(schema, schema, at, at, &mut errors);
    errors.sort_by_cached_key(|error| format!("{}: {}", error.field, error.message));
    Ok(errors)
}

/// Reports whether a schema has a structure, whatever its errors.
#[cfg(feature = "cel")]
pub(super) fn is_readable(schema: &Value) -> bool {
    read(schema).is_ok()
}

/// Upstream: `validateUnsupportedFields`, `newExtensions`
fn read(schema: &Value) -> Result<(), String> {
    let is_set = |name: &&str| schema.get(*name).is_some_and(|found| *found != "");
    if let Some(name) = UNSUPPORTED.iter().find(|name| is_set(name)) {
        let name = name.trim_start_matches(if *name == "$schema" { "$" } else { "" });
        return Err(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    let members = |name: &str| schema[name].as_object().into_iter().flat_map(Map::values);
    let one = ["not"].into_iter().filter_map(|name| schema.get(name));
    let listed = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(|name| list(schema, name));
    one.chain(listed).try_for_each(read)?;
    if schema.get(PRESERVES) == Some(&json!(false)) {
        let text = format!("internal error: '{PRESERVES}' must be true or undefined");
        return Err(text);
    }
    match schema.get("items") {
        Some(Value::Array(_)) => {
            return Err("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        }
        Some(items) => read(items)?,
        None => {}
    }
    members("properties").try_for_each(read)?;
    schema.get("additionalProperties").map_or(Ok(()), read)
}

/// Upstream: `validateStructuralInvariants`
fn invariants(schema: &Value, at: &str, level: Level, errors: &mut Vec<FieldError>) {
    let object = |name: &str| schema.get(name).filter(|found| found.is_object());
    let of = text(schema, "type");
    if of == "array" && object("items").is_none() {
        errors.push(FieldError::required(
            format!("{at}.items"),
            "must be specified",
        ));
    }
    if let Some(items) = object("items") {
        invariants(items, &format!("{at}.items"), Level::Item, errors);
    }
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    for (name, inner) in properties {
        invariants(
            inner,
            &format!("{at}.properties[{name}]"),
            Level::Field,
            errors,
        );
    }
    let additional = schema.get("additionalProperties");
    let forbid = |name: &str, detail: &str| FieldError::forbidden(format!("{at}.{name}"), detail);
    if additional.is_some() && level == Level::Root {
        errors.push(forbid(
            "additionalProperties",
            "must not be used at the root",
        ));
    }
    if let Some(inner) = object("additionalProperties") {
        invariants(
            inner,
            &format!("{at}.additionalProperties"),
            Level::Field,
            errors,
        );
    }
    let is_open = flag(schema, INT_OR_STRING);
    for name in [PRESERVES, EMBEDDED]
        .into_iter()
        .filter(|name| is_open && flag(schema, name))
    {
        let detail = "must be false if x-kubernetes-int-or-string is true";
        errors.push(FieldError::invalid(
            format!("{at}.{name}"),
            &json!(true),
            detail,
        ));
    }
    value_validation(schema, Choices::of(schema), at, errors);
    of_type(schema, at, level, errors);
    let is_embedded = flag(schema, EMBEDDED);
    if is_embedded && additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(forbid("additionalProperties", detail));
    }
    let has_meta = level == Level::Root || is_embedded;
    for name in ["kind", "apiVersion"] {
        let found = properties.get(name).filter(|_| has_meta);
        if let Some(found) = found
            .map(|found| text(found, "type"))
            .filter(|of| *of != "string")
        {
            let field = format!("{at}.properties[{name}].type");
            errors.push(FieldError::invalid(field, &json!(found), "must be string"));
        }
    }
    if let Some(metadata) = properties.get("metadata").filter(|_| has_meta) {
        let at = format!("{at}.properties[metadata]");
        of_metadata(metadata, &at, level == Level::Root, errors);
    }
    if is_embedded && !flag(schema, PRESERVES) && properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{at}.properties"), detail));
    }
}

fn of_type(schema: &Value, at: &str, level: Level, errors: &mut Vec<FieldError>) {
    let (of, field) = (text(schema, "type"), format!("{at}.type"));
    let is_open = flag(schema, INT_OR_STRING) || flag(schema, PRESERVES);
    if flag(schema, EMBEDDED) && of != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if of.is_empty() {
            FieldError::required(&field, detail)
        } else {
            FieldError::invalid(&field, &json!(of), detail)
        });
    } else if of.is_empty() && !is_open {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&field, detail));
    }
    if level == Level::Root && !of.is_empty() && of != "object" {
        let detail = "must be object at the root";
        errors.push(FieldError::invalid(field, &json!(of), detail));
    }
}

/// Upstream: `validateStructuralMetadataInvariants`
fn of_metadata(metadata: &Value, at: &str, is_root: bool, errors: &mut Vec<FieldError>) {
    let of = text(metadata, "type");
    if of != "object" {
        errors.push(FieldError::invalid(
            format!("{at}.type"),
            &json!(of),
            "must be object",
        ));
    }
    let names = metadata["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::keys);
    let members = metadata.as_object().into_iter().flat_map(Map::keys);
    let is_plain = names
        .into_iter()
        .all(|name| name == "name" || name == "generateName")
        && members
            .into_iter()
            .all(|name| ["type", "properties", "default"].contains(&&**name));
    if is_root && !is_plain {
        let detail = "must not specify anything other than name and generateName, but metadata is \
                      implicitly specified";
        errors.push(FieldError::forbidden(at, detail));
    }
}

/// The choices between an integer and a text, which may name types.
#[derive(Clone, Copy, Default)]
struct Choices {
    /// The schema's own alternatives are one.
    is_own: bool,
    /// The alternatives of the first of all schemas are one.
    is_first: bool,
}

impl Choices {
    fn of(schema: &Value) -> Self {
        let is_choice =
            |schema: &Value| schema["anyOf"] == json!([{"type": "integer"}, {"type": "string"}]);
        Self {
            is_own: is_choice(schema),
            is_first: list(schema, "allOf").next().is_some_and(is_choice),
        }
    }
}

/// Upstream: `validateValueValidation`
fn value_validation(schema: &Value, choices: Choices, at: &str, errors: &mut Vec<FieldError>) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && choices.is_own {
            continue;
        }
        for (index, inner) in list(schema, name).enumerate() {
            let inside = Choices {
                is_own: choices.is_first && name == "allOf" && index == 0,
                is_first: false,
            };
            nested(inner, inside, &format!("{at}.{name}[{index}]"), errors);
        }
    }
    let none = Choices::default();
    if let Some(not) = schema.get("not") {
        nested(not, none, &format!("{at}.not"), errors);
    }
    let source = text(schema, "pattern");
    if let Err(why) = pattern::compile(source) {
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(
            format!("{at}.pattern"),
            &json!(source),
            &detail,
        ));
    }
}

/// Upstream: `validateNestedValueValidation`
fn nested(schema: &Value, choices: Choices, at: &str, errors: &mut Vec<FieldError>) {
    value_validation(schema, choices, at, errors);
    let none = Choices::default();
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        nested(items, none, &format!("{at}.items"), errors);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        nested(inner, none, &format!("{at}.properties[{name}]"), errors);
    }
    for (name, wanted) in STRUCTURE {
        if schema.get(name).is_some_and(|found| *found != false) {
            let detail = format!("must be {wanted} to be structural");
            errors.push(FieldError::forbidden(format!("{at}.{name}"), &detail));
        }
    }
    if list(schema, "x-kubernetes-validations").next().is_some() {
        let field = format!("{at}.x-kubernetes-validations");
        errors.push(FieldError::forbidden(
            field,
            "must be empty to be structural",
        ));
    }
    if schema["properties"].get("metadata").is_some() {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(
            format!("{at}.properties[metadata]"),
            detail,
        ));
    }
}

/// Requires the structure that value validations at `of_value` need.
///
/// Upstream: `validateValueValidationCompleteness`
fn completeness(
    value: &Value,
    schema: &Value,
    at: &str,
    of_value: &str,
    errors: &mut Vec<FieldError>,
) {
    if let Some(not) = value.get("not") {
        nested_completeness(not, Some(schema), at, &format!("{of_value}.not"), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in list(value, name).enumerate() {
            let of_value = format!("{of_value}.{name}[{index}]");
            nested_completeness(inner, Some(schema), at, &of_value, errors);
        }
    }
}

/// Upstream: `validateNestedValueValidationCompleteness`
fn nested_completeness(
    value: &Value,
    schema: Option<&Value>,
    at: &str,
    of_value: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(schema) = schema else {
        let detail = format!("because it is defined in {of_value}");
        errors.push(FieldError::required(at, &detail));
        return;
    };
    completeness(value, schema, at, of_value, errors);
    let mut inside = |inner: &Value, found: Option<&Value>, step: &str| {
        let (at, of_value) = (format!("{at}{step}"), format!("{of_value}{step}"));
        nested_completeness(inner, found, &at, &of_value, errors);
    };
    if let Some(items) = value.get("items").filter(|items| items.is_object()) {
        inside(
            items,
            schema.get("items").filter(|items| items.is_object()),
            ".items",
        );
    }
    for (name, inner) in value["properties"].as_object().into_iter().flatten() {
        let found = schema["properties"].get(name);
        inside(inner, found, &format!(".properties[{name}]"));
    }
}
