//! Validation of custom resources against their schema.
//!
//! Upstream: `SchemaValidator` of kube-openapi, and `customResourceStrategy` of
//! `k8s.io/apiextensions-apiserver`.

mod embedded;
mod junctors;
mod lists;
mod node;
mod ratcheting;
#[cfg(feature = "cel")]
mod rules;
mod scale;
mod types;
mod values;

use serde_json::{Map, Value, json};

use junctors::junctors;
use node::{Node, Validation, exceeds, is_below, join};
use ratcheting::is_unchanged;
use values::{number, string};

use crate::custom::{AdditionalProperties, CustomResource, ListType, Schema};
use crate::kinds::{Subresource, Target};
use crate::members::text;
use crate::status::FieldError;
use crate::validation::{Findings, Subject};

/// Returns the errors and warnings of a write, given the errors of its metadata.
pub(in crate::validation) fn validate(
    custom: &CustomResource,
    subject: Subject<'_>,
    of_metadata: Vec<FieldError>,
) -> Findings {
    let value = &subject.new.value;
    let found = text(value, "kind");
    if found != subject.kind.kind {
        let detail = format!("must be {}", subject.kind.kind);
        return Findings::from(vec![FieldError::invalid("kind", &json!(found), &detail)]);
    }
    let (found, wanted) = (text(value, "apiVersion"), subject.kind.api_version());
    if found != wanted {
        let detail = format!("must be {wanted}");
        let error = FieldError::invalid("apiVersion", &json!(found), &detail);
        return Findings::from(vec![error]);
    }
    let old = subject.old.map(|old| &old.value);
    let is_status = subject.target == Target::Part(Subresource::Status);
    let (mut validation, mut errors) = (Validation::default(), of_metadata);
    if !is_status {
        let path = "";
        // The whole object is never unchanged: its schema doesn't specify its metadata.
        check_changed(&mut validation, &custom.schema, Node { value, old, path });
        errors.extend(validation.into_errors(""));
    } else if let (Some(schema), Some(value)) =
        (custom.schema.properties.get("status"), value.get("status"))
    {
        let (old, path) = (old.and_then(|old| old.get("status")), "");
        check(&mut validation, schema, Node { value, old, path });
        errors.extend(validation.into_errors("status"));
    }
    if let Some(scale) = &custom.scale {
        errors.extend(scale::errors(scale, value, is_status));
    }
    if !is_status {
        embedded::validate(&custom.schema, value, "", &mut errors);
    }
    if old.is_none_or(|old| lists::duplicates(&custom.schema, old, "").is_empty()) {
        errors.extend(lists::duplicates(&custom.schema, value, ""));
    }
    let findings = Findings::from(errors);
    #[cfg(feature = "cel")]
    let findings = rules::validate(&custom.schema, value, old, findings);
    findings
}

/// Checks a value. An unchanged value has no errors.
fn check(validation: &mut Validation, schema: &Schema, node: Node<'_>) {
    if !is_unchanged(schema, node) {
        check_changed(validation, schema, node);
    }
}

fn check_changed(validation: &mut Validation, schema: &Schema, node: Node<'_>) {
    types::check(validation, schema, node);
    if node.value.is_null() {
        of_choices(validation, schema, node);
        return;
    }
    junctors(validation, schema, node, check);
    match node.value {
        Value::String(found) => string(validation, schema, node, found),
        Value::Number(_) => number(validation, schema, node),
        Value::Array(items) => list(validation, schema, node, items),
        _ => {}
    }
    of_choices(validation, schema, node);
    validation.matched += 2;
    if let Value::Object(members) = node.value {
        validation.matched += 1;
        object(validation, schema, node, members);
    }
}

fn of_choices(validation: &mut Validation, schema: &Schema, node: Node<'_>) {
    let choices = schema.checks.choices.as_deref().unwrap_or_default();
    if choices.is_empty() || choices.iter().any(|choice| is_choice(choice, node.value)) {
        return;
    }
    let names: Vec<String> = choices
        .iter()
        .map(|choice| match choice {
            Value::String(name) => name.clone(),
            other => other.to_string(),
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    validation.push(FieldError::not_supported(node.path, node.value, &names));
}

fn list(validation: &mut Validation, schema: &Schema, node: Node<'_>, items: &[Value]) {
    validation.matched += 2;
    let old = node.old.and_then(Value::as_array);
    if let Some(inner) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", node.path);
            let before = old.filter(|_| schema.list_type == ListType::Map);
            let before = before.and_then(|old| {
                old.iter()
                    .find(|old| lists::has_same_keys(&schema.list_keys, old, item))
            });
            check(
                validation,
                inner,
                Node {
                    value: item,
                    old: before,
                    path: &path,
                },
            );
        }
    }
    let (found, checks) = (items.len(), &schema.checks);
    if let Some(min) = checks.min_items.filter(|min| exceeds(*min, found)) {
        at_least(validation, node, found, min, "items");
    }
    if let Some(max) = checks.max_items.filter(|max| is_below(*max, found)) {
        validation.push(FieldError::too_many(node.path, found, max));
    }
}

fn object(
    validation: &mut Validation,
    schema: &Schema,
    node: Node<'_>,
    members: &Map<String, Value>,
) {
    let (found, checks) = (members.len(), &schema.checks);
    if let Some(min) = checks.min_properties.filter(|min| exceeds(*min, found)) {
        at_least(validation, node, found, min, "properties");
    }
    if let Some(max) = checks.max_properties.filter(|max| is_below(*max, found)) {
        validation.push(FieldError::too_many(node.path, found, max));
    }
    let member = |validation: &mut Validation, path: &str, name: &String, schema, value| {
        check(
            validation,
            schema,
            Node {
                value,
                old: node.old.and_then(|old| old.get(name)),
                path,
            },
        );
    };
    let unnamed = members
        .iter()
        .filter(|(name, _)| !schema.properties.contains_key(*name));
    for (name, value) in unnamed {
        let path = format!("{}.{name}", node.path);
        match &schema.additional {
            AdditionalProperties::Of(inner) => member(validation, &path, name, inner, value),
            AdditionalProperties::Forbidden => {
                let detail = format!("{path} in body is a forbidden property");
                validation.push(FieldError::invalid(node.path, &json!(name), &detail));
            }
            AdditionalProperties::Any | AdditionalProperties::None => break,
        }
    }
    for (name, inner) in &schema.properties {
        if let Some(value) = members.get(name) {
            member(validation, &join(node.path, name), name, inner, value);
        }
    }
    for name in &checks.required {
        if !members.contains_key(name) {
            let path = join(node.path, name);
            validation.push(FieldError::required(path, ""));
        }
    }
}

fn at_least(validation: &mut Validation, node: Node<'_>, found: usize, min: i64, what: &str) {
    let detail = format!("{} in body should have at least {min} {what}", node.path);
    validation.push(FieldError::invalid(node.path, &json!(found), &detail));
}

/// Returns the errors of a default at the path `field`. Texts show paths within the default.
pub(super) fn errors_of_default(schema: &Schema, value: &Value, field: &str) -> Vec<FieldError> {
    let mut validation = Validation {
        is_default: true,
        ..Validation::default()
    };
    let (old, path) = (None, "");
    check(&mut validation, schema, Node { value, old, path });
    let errors: Vec<FieldError> = validation.into_errors(field).collect();
    #[cfg(feature = "cel")]
    let errors = if errors.is_empty() {
        rules::errors_of_default(schema, value, field)
    } else {
        errors
    };
    errors
}

/// Returns the errors in the type and the metadata of embedded objects in a value at a path.
pub(super) fn errors_of_embedded(schema: &Schema, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    embedded::validate(schema, value, path, &mut errors);
    errors
}

/// Reports whether a value, converted to the type of a choice, is that choice. Nothing is null.
fn is_choice(choice: &Value, value: &Value) -> bool {
    match (choice, value) {
        (Value::Number(choice), Value::Number(value)) => {
            let value = value.as_f64().unwrap_or_default();
            let is_whole = choice.is_i64();
            choice.as_f64() == Some(if is_whole { value.trunc() } else { value })
        }
        (Value::String(choice), Value::Number(value)) => {
            let letter = value.as_u64().and_then(|code| u32::try_from(code).ok());
            let letter = letter.and_then(char::from_u32);
            letter.is_some_and(|letter| choice.chars().eq([letter]))
        }
        (Value::Null, _) => false,
        _ => choice == value,
    }
}
