//! The schema's view of a value, also of a custom resource: atomic, or made of parts.

use kube_apimachinery::schema::{self, Field, ListKey, Shape, Topology, Type, Version};
use serde_json::Value;

use crate::custom::{AdditionalProperties, ListType as Identity, Schema, SchemaType};
use crate::kinds::{Kind, type_in};

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TypeRef<'a> {
    /// A scalar.
    Scalar(Scalar),
    /// An object of a schema type; `atomic` if it has one owner.
    Object { of: &'static Type, atomic: bool },
    /// A map to values of a type.
    Map { element: schema::Kind, atomic: bool },
    /// A list.
    List(&'static Field),
    /// A part of a custom resource.
    Custom(CustomType<'a>),
    /// An atomic list of strings.
    Texts,
    /// Any value; atomic.
    Untyped,
    /// Any value; object members have separate owners.
    Deduced,
}

/// The types of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    /// A string.
    String,
    /// A number.
    Numeric,
    /// True or false.
    Boolean,
    /// Any scalar, such as a quantity.
    Untyped,
}

/// The type of a value of known form.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'a> {
    Scalar(Scalar),
    Map(MapType<'a>),
    List(ListType<'a>),
}

/// The type of an object or a map.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapType<'a> {
    /// The members that the schema names.
    pub(super) of: Option<&'static Type>,
    /// The type that names members of a custom resource.
    pub(super) custom: Option<CustomType<'a>>,
    /// The type of all other members; `None` if others are not allowed.
    pub(super) element: Option<TypeRef<'a>>,
    /// True if the map is atomic.
    pub(super) atomic: bool,
}

/// The type of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListType<'a> {
    /// The identity of its elements.
    pub(super) relation: Relation<'a>,
    /// The type of its elements.
    pub(super) element: TypeRef<'a>,
}

/// The identity of list elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Relation<'a> {
    /// None: the list is atomic.
    Atomic,
    /// Elements are identified by value.
    Set,
    /// Elements are identified by these members.
    Keyed(&'static [ListKey]),
    /// Elements of a custom resource are identified by these members.
    Named(&'a [String]),
}

impl<'a> TypeRef<'a> {
    /// Returns the type of a kind's objects, with the members of the newest version.
    pub(crate) fn of_kind(kind: &'a Kind) -> Self {
        Self::in_version(kind, Version::NEWEST)
    }

    /// Returns the type of a kind's objects in a version.
    pub(crate) fn in_version(kind: &'a Kind, version: Version) -> Self {
        if let Some(custom) = &kind.custom {
            return Self::Custom(CustomType::of_resource(&custom.schema));
        }
        type_in(kind, version).map_or(Self::Deduced, |of| Self::Object { of, atomic: false })
    }

    fn of_field(field: &'static Field) -> Self {
        let atomic = *field.topology() == Topology::Atomic;
        match (field.shape, field.kind) {
            (Shape::List, _) => Self::List(field),
            (Shape::Map, element) => Self::Map { element, atomic },
            (Shape::Plain | Shape::Pointer, schema::Kind::Struct(name)) => name
                .find()
                .map_or(Self::Untyped, |of| Self::Object { of, atomic }),
            (Shape::Plain | Shape::Pointer, kind) => Self::of_element(kind),
        }
    }

    fn of_element(kind: schema::Kind) -> Self {
        use schema::Kind;
        match kind {
            Kind::String(_) | Kind::Bytes => Self::Scalar(Scalar::String),
            Kind::Int32 | Kind::Int64 | Kind::Float => Self::Scalar(Scalar::Numeric),
            Kind::Bool => Self::Scalar(Scalar::Boolean),
            Kind::Quantity | Kind::IntOrString | Kind::Time | Kind::MicroTime => {
                Self::Scalar(Scalar::Untyped)
            }
            Kind::Raw | Kind::Json | Kind::Either(..) => Self::Untyped,
            Kind::Strings => Self::Texts,
            Kind::Struct(name) => name.find().map_or(Self::Untyped, |of| {
                let atomic = of.atomic;
                Self::Object { of, atomic }
            }),
        }
    }

    /// Returns the expected form of `value`, or its actual form if the type allows any.
    pub(super) fn form(self, value: Option<&Value>) -> Form<'a> {
        match self {
            Self::Scalar(scalar) => Form::Scalar(scalar),
            Self::Custom(custom) => custom.form(value),
            Self::Object { of, atomic } => Form::Map(MapType {
                of: Some(of),
                custom: None,
                element: None,
                atomic,
            }),
            Self::Map { element, atomic } => Form::Map(MapType {
                of: None,
                custom: None,
                element: Some(Self::of_element(element)),
                atomic,
            }),
            Self::List(field) => Form::List(ListType {
                relation: match field.topology() {
                    Topology::Set => Relation::Set,
                    Topology::Keyed(keys) => Relation::Keyed(keys),
                    Topology::Atomic | Topology::Granular => Relation::Atomic,
                },
                element: Self::of_element(field.kind),
            }),
            Self::Texts => Form::List(ListType {
                relation: Relation::Atomic,
                element: Self::Scalar(Scalar::String),
            }),
            Self::Untyped | Self::Deduced => match value {
                Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                    Form::Scalar(Scalar::Untyped)
                }
                Some(Value::Array(_)) => Form::List(ListType {
                    relation: Relation::Atomic,
                    element: Self::Untyped,
                }),
                None | Some(Value::Null | Value::Object(_)) => Form::Map(MapType {
                    of: None,
                    custom: None,
                    element: Some(self),
                    atomic: matches!(self, Self::Untyped),
                }),
            },
        }
    }

    /// Returns true if values may have any form.
    pub(super) fn is_open(self) -> bool {
        match self {
            Self::Custom(custom) => custom.is_open(),
            other => matches!(other, Self::Untyped | Self::Deduced),
        }
    }
}

impl<'a> MapType<'a> {
    /// Returns the type of a member that the schema names.
    pub(super) fn field(self, name: &str) -> Option<TypeRef<'a>> {
        if let Some(custom) = self.custom {
            return custom.field(name);
        }
        self.of?.field(name).map(TypeRef::of_field)
    }

    /// Returns the type of a member; `None` if there is no such member.
    pub(super) fn member(self, name: &str) -> Option<TypeRef<'a>> {
        self.field(name).or(self.element)
    }

    /// Returns the type of an existing member. A member outside the schema is atomic.
    pub(super) fn found(self, name: &str) -> TypeRef<'a> {
        self.member(name).unwrap_or(TypeRef::Untyped)
    }
}

impl ListType<'_> {
    /// Returns the element type, if elements are objects of a schema type.
    pub(super) fn element_type(self) -> Option<&'static Type> {
        match self.element {
            TypeRef::Object { of, .. } => Some(of),
            _ => None,
        }
    }
}

/// Returns the default of a key that a list element lacks.
pub(super) fn key_default(element: TypeRef<'_>, key: &str) -> Option<Value> {
    match element {
        TypeRef::Custom(custom) => custom.schema.properties.get(key)?.default.clone(),
        _ => None,
    }
}

/// The type of a custom resource or of a part of it.
///
/// Upstream: `BuildOpenAPIV3` of `k8s.io/apiextensions-apiserver` and `ToSchemaFromOpenAPI` of
/// `k8s.io/kube-openapi`
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
