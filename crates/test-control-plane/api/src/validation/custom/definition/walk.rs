//! The walk through a version's schema, at all depths.
//!
//! Upstream: `ValidateCustomResourceDefinitionOpenAPISchema`

use serde_json::{Value, json};

use super::lists::{self, LIST_TYPE};
use super::place::{Level, Place};
#[cfg(feature = "cel")]
use super::rules;
use crate::custom::{SchemaType, flag};
use crate::members::text;
use crate::status::FieldError;

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
#[cfg(not(feature = "cel"))]
const RULES: &str = "x-kubernetes-validations";

/// Fields that no schema supports.
const UNSUPPORTED: [&str; 6] = [
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
];

/// Returns the errors of a schema and those inside. Rules are only checked if it `is_structural`.
pub(super) fn errors(schema: &Value, at: &str, is_structural: bool) -> Vec<FieldError> {
    let mut walk = Walk::default();
    #[cfg(feature = "cel")]
    {
        walk.rules = is_structural.then(rules::Report::default);
    }
    #[cfg(not(feature = "cel"))]
    let _: bool = is_structural;
    walk.visit(schema, &Place::root(at));
    #[cfg(feature = "cel")]
    if let Some(report) = walk.rules {
        walk.errors.extend(report.into_errors(at));
    }
    walk.errors
}

#[derive(Default)]
struct Walk {
    errors: Vec<FieldError>,
    /// The errors of rules, if the schema is otherwise valid.
    #[cfg(feature = "cel")]
    rules: Option<rules::Report>,
}

/// Fields of a schema that hold others: one, named ones or a list of them.
const HOLDERS: [&str; 9] = [
    "additionalProperties",
    "properties",
    "not",
    "allOf",
    "oneOf",
    "anyOf",
    "definitions",
    "items",
    "dependencies",
];

/// Returns the schemas directly inside of a schema: the field that holds each, its key or index, and
/// the schema.
pub(super) fn inner(schema: &Value) -> impl Iterator<Item = (&'static str, String, &Value)> {
    let is_named = |name: &str| ["properties", "definitions", "dependencies"].contains(&name);
    let holders = HOLDERS
        .into_iter()
        .filter_map(|name| Some((name, schema.get(name)?)));
    let all = holders.flat_map(move |(name, holder)| -> Vec<_> {
        match holder {
            Value::Object(members) if is_named(name) => {
                let members = members.iter();
                members
                    .map(|(key, inner)| (name, format!("[{key}]"), inner))
                    .collect()
            }
            Value::Array(elements) => {
                let elements = elements.iter().enumerate();
                elements
                    .map(|(index, inner)| (name, format!("[{index}]"), inner))
                    .collect()
            }
            one => vec![(name, String::new(), one)],
        }
    });
    all.filter(|(_, _, inner)| inner.is_object())
}

impl Walk {
    fn visit(&mut self, schema: &Value, place: &Place<'_>) {
        let before = self.errors.len();
        self.standard(schema, place);
        self.insides(schema, place);
        let at = &place.at;
        if schema.get(PRESERVES) == Some(&json!(false)) {
            let detail = "must be true or undefined";
            self.errors.push(FieldError::invalid(
                format!("{at}.{PRESERVES}"),
                &json!(false),
                detail,
            ));
        }
        lists::check(schema, at, &mut self.errors);
        #[cfg(feature = "cel")]
        rules::check_texts(schema, at, &mut self.errors);
        #[cfg(feature = "cel")]
        if let Some(report) = self.rules.as_mut().filter(|_| place.has_rules)
            && self.errors.len() == before
        {
            report.check(schema, place);
        }
        #[cfg(not(feature = "cel"))]
        let _: usize = before;
    }

    /// Upstream: `specStandardValidatorV3.validate`
    fn standard(&mut self, schema: &Value, place: &Place<'_>) {
        let at = &place.at;
        let of = text(schema, "type");
        if !of.is_empty() && SchemaType::of_name(of).is_none() {
            let names = SchemaType::ALL.map(SchemaType::name);
            let unknown = FieldError::not_supported(format!("{at}.type"), &json!(of), &names);
            self.errors.push(unknown);
        }
        let mut forbid = |name: &str, detail: &str| {
            self.errors
                .push(FieldError::forbidden(format!("{at}.{name}"), detail));
        };
        if let Some(reason) = place
            .bans_defaults
            .as_ref()
            .filter(|_| schema.get("default").is_some())
        {
            forbid("default", &format!("must not be set {reason}"));
        }
        for name in UNSUPPORTED
            .into_iter()
            .filter(|name| schema.get(name).is_some())
        {
            forbid(name, &format!("{name} is not supported"));
        }
        if of == "null" {
            forbid(
                "type",
                "type cannot be set to null, use nullable as an alternative",
            );
        }
        if schema.get("items").is_some_and(Value::is_array) {
            forbid("items", "items must be a schema object and not an array");
        }
        if place.is_in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
            forbid(
                "x-kubernetes-embedded-resource",
                "must not be used inside of resource meta",
            );
        }
        #[cfg(not(feature = "cel"))]
        if schema.get(RULES).is_some() {
            forbid(
                RULES,
                "this build does not support CEL rules: enable the feature `cel` of \
                 kube-test-control-plane, or remove x-kubernetes-validations",
            );
        }
        if flag(schema, "uniqueItems") {
            forbid(
                "uniqueItems",
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
    }

    /// Visits the schemas inside of a schema.
    fn insides(&mut self, schema: &Value, place: &Place<'_>) {
        let at = &*place.at;
        let additional = schema.get("additionalProperties");
        let properties = schema.get("properties").and_then(Value::as_object);
        let has_properties = properties.is_some_and(|properties| !properties.is_empty());
        if has_properties && additional.is_some_and(|it| *it != true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.errors.push(FieldError::forbidden(
                format!("{at}.additionalProperties"),
                detail,
            ));
        }
        for (holder, key, inner) in inner(schema) {
            let mut inside = Place {
                at: format!("{at}.{holder}{key}"),
                most: most_inside(schema, place.most),
                level: if flag(inner, "x-kubernetes-embedded-resource") {
                    Level::Embedded
                } else {
                    Level::Part
                },
                ..place.clone()
            };
            match holder {
                "additionalProperties" => {
                    if place.is_in_metadata {
                        let reason = "inside additionalProperties applying to object metadata";
                        inside.bans_defaults = Some(reason.to_owned());
                    }
                }
                "properties" => into_property(&key, place, &mut inside),
                "items" => {
                    if text(schema, LIST_TYPE) != "map" {
                        inside.unmatched = inside.unmatched.or(Some(at));
                    }
                }
                _ => inside.has_rules = false,
            }
            self.visit(inner, &inside);
        }
    }
}

fn into_property(key: &str, place: &Place<'_>, inside: &mut Place<'_>) {
    if place.is_resource() && ["[metadata]", "[kind]", "[apiVersion]"].contains(&key) {
        inside.is_in_metadata = true;
        if place.level == Level::Resource {
            let name = key.trim_matches(['[', ']']);
            inside.bans_defaults = Some(format!("in top-level {name}"));
        }
    }
}

/// Returns the largest number of values directly inside of those of a schema.
///
/// Upstream: `extractMaxElements`
fn most_inside(schema: &Value, most: Option<u64>) -> Option<u64> {
    let max = match text(schema, "type") {
        "object" if schema.get("additionalProperties").is_some() => "maxProperties",
        "array" => "maxItems",
        _ => return most,
    };
    let max = schema.get(max)?.as_i64()?;
    Some(most?.saturating_mul(u64::try_from(max).unwrap_or(0)))
}
