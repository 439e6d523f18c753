//! Texts of upstream's internal types, which errors about whole values show: every field in
//! the order of the Go type, under its Go name.

use kube_apimachinery::json::to_go_string;
use serde_json::{Value, json};

use self::Form::{Any, Flag, Number, Schema, SchemaOrArray, SchemaOrBool, Schemas, Struct, Text};
use crate::members::list;

/// The fields of a Go struct: the name in Go, the name in JSON, the form.
type Members = [(&'static str, &'static str, Form)];

/// The form of a field.
#[derive(Clone, Copy)]
enum Form {
    /// A string; empty if absent.
    Text,
    /// A boolean; false if absent.
    Flag,
    /// An integer; 0 if absent.
    Number,
    /// Any value; null if absent.
    Any,
    /// A struct, a list of structs or a map of structs; null if absent.
    Struct(&'static Members),
    /// A schema.
    Schema,
    /// A list or map of schemas.
    Schemas,
    /// A schema or a list of schemas, in a struct of both.
    SchemaOrArray,
    /// A schema or a boolean, in a struct of both.
    SchemaOrBool,
}

const VERSION: &Members = &[
    ("Name", "name", Text),
    ("Served", "served", Flag),
    ("Storage", "storage", Flag),
    ("Deprecated", "deprecated", Flag),
    ("DeprecationWarning", "deprecationWarning", Any),
    (
        "Schema",
        "schema",
        Struct(&[("OpenAPIV3Schema", "openAPIV3Schema", Schema)]),
    ),
    (
        "Subresources",
        "subresources",
        Struct(&[
            ("Status", "status", Struct(&[])),
            ("Scale", "scale", Struct(SCALE)),
        ]),
    ),
    (
        "AdditionalPrinterColumns",
        "additionalPrinterColumns",
        Struct(COLUMN),
    ),
    (
        "SelectableFields",
        "selectableFields",
        Struct(&[("JSONPath", "jsonPath", Text)]),
    ),
];

const SCALE: &Members = &[
    ("SpecReplicasPath", "specReplicasPath", Text),
    ("StatusReplicasPath", "statusReplicasPath", Text),
    ("LabelSelectorPath", "labelSelectorPath", Any),
];

const COLUMN: &Members = &[
    ("Name", "name", Text),
    ("Type", "type", Text),
    ("Format", "format", Text),
    ("Description", "description", Text),
    ("Priority", "priority", Number),
    ("JSONPath", "jsonPath", Text),
];

const SCHEMA: &Members = &[
    ("ID", "id", Text),
    ("Schema", "$schema", Text),
    ("Ref", "$ref", Any),
    ("Description", "description", Text),
    ("Type", "type", Text),
    ("Nullable", "nullable", Flag),
    ("Format", "format", Text),
    ("Title", "title", Text),
    ("Default", "default", Any),
    ("Maximum", "maximum", Any),
    ("ExclusiveMaximum", "exclusiveMaximum", Flag),
    ("Minimum", "minimum", Any),
    ("ExclusiveMinimum", "exclusiveMinimum", Flag),
    ("MaxLength", "maxLength", Any),
    ("MinLength", "minLength", Any),
    ("Pattern", "pattern", Text),
    ("MaxItems", "maxItems", Any),
    ("MinItems", "minItems", Any),
    ("UniqueItems", "uniqueItems", Flag),
    ("MultipleOf", "multipleOf", Any),
    ("Enum", "enum", Any),
    ("MaxProperties", "maxProperties", Any),
    ("MinProperties", "minProperties", Any),
    ("Required", "required", Any),
    ("Items", "items", SchemaOrArray),
    ("AllOf", "allOf", Schemas),
    ("OneOf", "oneOf", Schemas),
    ("AnyOf", "anyOf", Schemas),
    ("Not", "not", Schema),
    ("Properties", "properties", Schemas),
    ("AdditionalProperties", "additionalProperties", SchemaOrBool),
    ("PatternProperties", "patternProperties", Schemas),
    ("Dependencies", "dependencies", Any),
    ("AdditionalItems", "additionalItems", SchemaOrBool),
    ("Definitions", "definitions", Schemas),
    (
        "ExternalDocs",
        "externalDocs",
        Struct(&[("Description", "description", Text), ("URL", "url", Text)]),
    ),
    ("Example", "example", Any),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Any,
    ),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Any),
    ("XListType", "x-kubernetes-list-type", Any),
    ("XMapType", "x-kubernetes-map-type", Any),
    ("XValidations", "x-kubernetes-validations", Struct(RULE)),
];

const RULE: &Members = &[
    ("Rule", "rule", Text),
    ("Message", "message", Text),
    ("MessageExpression", "messageExpression", Text),
    ("Reason", "reason", Any),
    ("FieldPath", "fieldPath", Text),
    ("OptionalOldSelf", "optionalOldSelf", Any),
];

/// Returns the text of a definition's versions, without the parts that `is_shared` names: the
/// internal type moves them to the spec.
pub(super) fn versions(spec: &Value, is_shared: impl Fn(&str) -> bool) -> String {
    if !spec.get("versions").is_some_and(Value::is_array) {
        return "null".to_owned();
    }
    let mut own: Vec<Value> = list(spec, "versions").cloned().collect();
    for version in own.iter_mut().filter_map(Value::as_object_mut) {
        version.retain(|member, _| !is_shared(member));
    }
    written(&Struct(VERSION), Some(&Value::Array(own)))
}

/// Returns the text of a schema.
pub(super) fn schema(schema: &Value) -> String {
    written(&Schema, Some(schema))
}

/// Returns the text of the field `items` of a schema.
pub(super) fn items(items: &Value) -> String {
    match items {
        Value::Null => "{\"Schema\":null,\"JSONSchemas\":null}".to_owned(),
        items => written(&SchemaOrArray, Some(items)),
    }
}

/// Returns the fields of a schema that are set, in the order of the Go type, by their Go names.
pub(super) fn set_members(schema: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    let members = SCHEMA.iter();
    members.filter_map(|(go_name, name, _)| Some((*go_name, schema.get(*name)?)))
}

/// Returns the text of a rule.
#[cfg(feature = "cel")]
pub(super) fn rule(rule: &Value) -> String {
    written(&Struct(RULE), Some(rule))
}

fn written(form: &Form, value: Option<&Value>) -> String {
    let null = &Value::Null;
    let value = value.unwrap_or(null);
    match (form, value) {
        (Text, Value::Null) => "\"\"".to_owned(),
        (Flag, Value::Null) => "false".to_owned(),
        (Number, Value::Null) => "0".to_owned(),
        (Text | Flag | Number | Any, value) => to_go_string(value),
        (SchemaOrArray, Value::Array(_)) => format!(
            "{{\"Schema\":null,\"JSONSchemas\":{}}}",
            written(&Schemas, Some(value))
        ),
        (SchemaOrArray, Value::Object(_)) => format!(
            "{{\"Schema\":{},\"JSONSchemas\":null}}",
            written(&Schema, Some(value))
        ),
        (SchemaOrBool, Value::Bool(_) | Value::Object(_)) => format!(
            "{{\"Allows\":{},\"Schema\":{}}}",
            *value != json!(false),
            written(&Schema, Some(value).filter(|value| value.is_object()))
        ),
        (Struct(_) | Schemas, Value::Array(elements)) => {
            let form = if matches!(form, Schemas) {
                &Schema
            } else {
                form
            };
            let elements = elements.iter().map(|element| written(form, Some(element)));
            format!("[{}]", elements.collect::<Vec<_>>().join(","))
        }
        (Struct(members), Value::Object(_)) => object(members, value),
        (Schema, Value::Object(_)) => object(SCHEMA, value),
        (Schemas, Value::Object(named)) => {
            let named = named.iter().map(|(name, schema)| {
                format!("{}:{}", to_go_string(&json!(name)), object(SCHEMA, schema))
            });
            format!("{{{}}}", named.collect::<Vec<_>>().join(","))
        }
        _ => "null".to_owned(),
    }
}

fn object(members: &Members, value: &Value) -> String {
    let members = members.iter().map(|(name, member, form)| {
        let text = written(form, value.get(*member));
        format!("\"{name}\":{text}")
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_omit_shared_parts() {
        let schema = json!({"type": "object", "properties": {"a": {"additionalProperties": true}}});
        let spec = json!({"versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n"}},
            "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n"}],
        }]});
        let head = "[{\"Name\":\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,\
                    \"DeprecationWarning\":null,";
        let tail = "\"SelectableFields\":null}]";
        let parts = ["schema", "subresources", "additionalPrinterColumns"];
        assert_eq!(
            versions(&spec, |member| parts.contains(&member)),
            format!(
                "{head}\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,{tail}"
            )
        );
        let own = versions(&spec, |member| member == "schema");
        assert_eq!(
            own,
            format!(
                "{head}\"Schema\":null,\"Subresources\":{{\"Status\":{{}},\"Scale\":\
                 {{\"SpecReplicasPath\":\".spec.n\",\"StatusReplicasPath\":\"\",\
                 \"LabelSelectorPath\":null}}}},\"AdditionalPrinterColumns\":[{{\"Name\":\"N\",\
                 \"Type\":\"integer\",\"Format\":\"\",\"Description\":\"\",\"Priority\":0,\
                 \"JSONPath\":\".spec.n\"}}],{tail}"
            )
        );
        let own = versions(&spec, |member| member == "subresources");
        let start = "\"Schema\":{\"OpenAPIV3Schema\":{\"ID\":\"\",\"Schema\":\"\",\"Ref\":null,\
                     \"Description\":\"\",\"Type\":\"object\",\"Nullable\":false,";
        assert!(own.contains(start), "{own}");
        let map = "\"AdditionalProperties\":{\"Allows\":true,\"Schema\":null}";
        assert!(own.contains(map), "{own}");
    }
}
