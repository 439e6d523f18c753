//! The types of custom resources, from the schema of their definition.
//!
//! Upstream: `BuildOpenAPIV3` of `k8s.io/apiextensions-apiserver` and `ToSchemaFromOpenAPI` of
//! `k8s.io/kube-openapi`

use kube_apimachinery::schema;
use serde_json::Value;

use super::types::{Form, ListType, MapType, Relation, Scalar, TypeRef};
use crate::custom::{AdditionalProperties, ListType as Identity, Schema, SchemaType};

/// The type of a custom resource or of a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CustomType<'a> {
    pub(super) schema: &'a Schema,
    /// True for a whole object, which has a kind and metadata.
    has_meta: bool,
    /// True if members outside the schema have types deduced from their values, as the schema or one
    /// around it preserves them.
    preserves: bool,
}

impl<'a> CustomType<'a> {
    /// Returns the type of a resource with this schema.
    pub(super) fn of_resource(schema: &'a Schema) -> Self {
        Self {
            schema,
            has_meta: true,
            preserves: schema.preserve,
        }
    }

    /// Returns the type of a part, which inherits that members outside the schema are preserved.
    fn part(self, schema: &'a Schema) -> TypeRef<'a> {
        TypeRef::Custom(Self {
            schema,
            has_meta: schema.embedded,
            preserves: self.preserves || schema.preserve,
        })
    }

    /// Returns true if values may have any form, as those of integers or strings, whose validation
    /// follows.
    pub(super) fn is_open(self) -> bool {
        self.schema.of.is_none()
    }

    /// Returns the expected form of a value, or its actual form if the type allows any.
    pub(super) fn form(self, value: Option<&Value>) -> Form<'a> {
        match self.schema.of {
            Some(SchemaType::String) => Form::Scalar(match &*self.schema.checks.format {
                "" | "byte" => Scalar::String,
                _ => Scalar::Untyped,
            }),
            Some(SchemaType::Integer | SchemaType::Number) => Form::Scalar(Scalar::Numeric),
            Some(SchemaType::Boolean) => Form::Scalar(Scalar::Boolean),
            Some(SchemaType::Array) => Form::List(self.list()),
            Some(SchemaType::Object) => Form::Map(self.map()),
            None => match value {
                Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                    Form::Scalar(Scalar::Untyped)
                }
                Some(Value::Array(_)) => Form::List(self.list()),
                None | Some(Value::Null | Value::Object(_)) => Form::Map(self.map()),
            },
        }
    }

    fn list(self) -> ListType<'a> {
        let items = self.schema.items.as_deref();
        ListType {
            relation: match self.schema.list_type {
                Identity::Atomic => Relation::Atomic,
                Identity::Set => Relation::Set,
                Identity::Map => Relation::Named(&self.schema.list_keys),
            },
            element: items.map_or(TypeRef::Untyped, |items| self.part(items)),
        }
    }

    fn map(self) -> MapType<'a> {
        // A schema without members is one of any members.
        let is_bare = self.schema.properties.is_empty() && !self.has_meta;
        MapType {
            of: None,
            custom: Some(self),
            element: match &self.schema.additional {
                AdditionalProperties::Of(inner) => Some(self.part(inner)),
                AdditionalProperties::Any => Some(TypeRef::Deduced),
                AdditionalProperties::Forbidden => None,
                AdditionalProperties::None => {
                    (self.preserves || is_bare).then_some(TypeRef::Deduced)
                }
            },
            atomic: self.schema.atomic_map,
        }
    }

    /// Returns the type of a member that the schema names. Whole objects have metadata.
    pub(super) fn field(self, name: &str) -> Option<TypeRef<'a>> {
        match name {
            "apiVersion" | "kind" if self.has_meta => Some(TypeRef::Scalar(Scalar::String)),
            "metadata" if self.has_meta => {
                let of = schema::find_type("ObjectMeta")?;
                Some(TypeRef::Object { of, atomic: false })
            }
            _ => {
                let schema = self.schema.properties.get(name)?;
                Some(self.part(schema))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::managed_fields::fields_v1;
    use crate::managed_fields::typed::{field_set, is_declared};

    fn fields(schema: &Value, value: &Value) -> Value {
        let schema = Schema::read(schema);
        let of = TypeRef::Custom(CustomType::of_resource(&schema));
        assert!(is_declared(of, value), "{value}");
        fields_v1::encode(&field_set(of, value))
    }

    #[test]
    fn parts_inherit_that_unknown_members_are_preserved() {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "known": {"type": "object", "properties": {"a": {"type": "string"}}},
                "names": {"type": "object", "additionalProperties": {
                    "type": "object", "properties": {"a": {"type": "string"}},
                }},
                "closed": {"type": "object", "additionalProperties": false},
            },
        }}});
        let value = json!({"spec": {
            "known": {"a": "x", "b": {"c": 1}}, "names": {"n": {"d": [1]}}, "other": {"e": 1},
        }});
        let wanted = json!({"f:spec": {
            "f:known": {"f:a": {}, "f:b": {".": {}, "f:c": {}}},
            "f:names": {"f:n": {".": {}, "f:d": {}}},
            "f:other": {".": {}, "f:e": {}},
        }});
        assert_eq!(fields(&schema, &value), wanted);
        let schema = Schema::read(&schema);
        let of = TypeRef::Custom(CustomType::of_resource(&schema));
        for unknown in [json!({"other": 1}), json!({"spec": {"closed": {"a": 1}}})] {
            assert!(!is_declared(of, &unknown), "{unknown}");
        }
    }

    #[test]
    fn schemas_without_a_type_name_members_and_elements() {
        let schema = json!({"type": "object", "properties": {
            "any": {"x-kubernetes-preserve-unknown-fields": true, "properties": {
                "set": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "string"}},
            }},
            "count": {"x-kubernetes-int-or-string": true},
        }});
        for (value, wanted) in [
            (
                json!({"any": {"set": ["a"], "b": {"c": 1}}, "count": 1}),
                json!({
                    "f:any": {"f:set": {"v:\"a\"": {}}, "f:b": {".": {}, "f:c": {}}},
                    "f:count": {},
                }),
            ),
            (
                json!({"any": [1], "count": "1"}),
                json!({"f:any": {}, "f:count": {}}),
            ),
            (json!({"any": "text"}), json!({"f:any": {}})),
        ] {
            assert_eq!(fields(&schema, &value), wanted, "{value}");
        }
    }
}
