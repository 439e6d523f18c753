//! A served version of a custom resource.

use std::convert::Infallible;
use std::sync::Arc;

use kube_apimachinery::schema::{self, UnknownMembers};
use serde_json::{Map, Value, json};

use super::complete;
use super::definition::Definition;
use super::embedded::{PathForm, each_embedded};
use super::json_path::JsonPath;
use super::scale::Scale;
use super::schema::{Schema, flag};
use crate::members::{group_of, text, text_at};

/// A version of a definition, as requests need it.
#[derive(Clone, Debug)]
pub struct CustomResource {
    /// The name of the definition.
    pub definition: String,
    /// The kind of lists.
    pub list_kind: String,
    /// The `apiVersion` of stored objects.
    pub stored_version: String,
    /// The paths of `/scale`, if the version has it.
    pub scale: Option<Scale>,
    /// The columns of tables besides the name.
    pub columns: Vec<Column>,
    /// The warning of a deprecated version.
    pub warning: Option<String>,
    /// True while objects are deleted before their definition.
    pub terminating: bool,
    /// `spec.conversion.webhook` of the definition, if a webhook converts objects.
    webhook: Option<Value>,
    /// The parts of the definition whose change replaces the resource.
    identity: Value,
    pub(crate) schema: Schema,
    /// The schema as the definition has it, for documents.
    pub(crate) published: Value,
    /// The schema of the stored version, if it is another one.
    pub(super) stored_schema: Option<Schema>,
    /// All served versions, by name, with their schemas.
    served: Arc<[(String, Schema)]>,
}

/// A column of tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The type of the cells.
    pub of: String,
    /// The format of the cells.
    pub format: String,
    /// The description.
    pub description: String,
    /// 0 for columns that are always shown.
    pub priority: i64,
    /// The path of the value.
    pub(crate) path: JsonPath,
}

impl Column {
    /// Reads the columns of a version. Those from the first unreadable path on are left out.
    ///
    /// Upstream: `New` of `tableconvertor`
    pub(super) fn read_all(version: &Value) -> Vec<Self> {
        let columns = version
            .get("additionalPrinterColumns")
            .and_then(Value::as_array)
            .filter(|columns| !columns.is_empty());
        let Some(columns) = columns else {
            let age = JsonPath::read(".metadata.creationTimestamp").map(|path| Self {
                name: "Age".to_owned(),
                of: "date".to_owned(),
                format: String::new(),
                description: "CreationTimestamp is a timestamp representing the server time when \
                              this object was created. It is not guaranteed to be set in \
                              happens-before order across separate operations. Clients may not \
                              set this value. It is represented in RFC3339 form and is in UTC.\n\n\
                              Populated by the system. Read-only. Null for lists. More info: \
                              https://git.k8s.io/community/contributors/devel/sig-architecture/\
                              api-conventions.md#metadata"
                    .to_owned(),
                priority: 0,
                path,
            });
            return age.into_iter().collect();
        };
        let read = |column: &Value| {
            let path = text(column, "jsonPath");
            let description = text(column, "description");
            Some(Self {
                name: text(column, "name").to_owned(),
                of: text(column, "type").to_owned(),
                format: text(column, "format").to_owned(),
                description: if description.is_empty() {
                    format!("Custom resource definition column (in JSONPath format): {path}")
                } else {
                    description.to_owned()
                },
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
                path: JsonPath::read(path)?,
            })
        };
        columns.iter().map_while(read).collect()
    }
}

impl CustomResource {
    /// Reads a version of a definition.
    pub(crate) fn read(definition: Definition<'_>, version: &Value) -> Self {
        let stored = definition.storage_version().unwrap_or(version);
        let is_stored = text(stored, "name") == text(version, "name");
        let schema = |version: &Value| {
            let found = version.pointer("/schema/openAPIV3Schema");
            found.map(Schema::read).unwrap_or_default()
        };
        Self {
            definition: text_at(definition.0, "/metadata/name").to_owned(),
            list_kind: text_at(definition.0, "/status/acceptedNames/listKind").to_owned(),
            stored_version: format!("{}/{}", definition.group(), text(stored, "name")),
            scale: Scale::read(version),
            columns: Column::read_all(version),
            warning: warning(definition, version),
            terminating: definition.is("Terminating"),
            webhook: webhook(definition),
            identity: json!({
                "uid": text_at(definition.0, "/metadata/uid"),
                "spec": definition.0.get("spec"),
                "names": definition.0.pointer("/status/acceptedNames"),
            }),
            schema: schema(version),
            published: version
                .pointer("/schema/openAPIV3Schema")
                .filter(|schema| schema.is_object())
                .cloned()
                .unwrap_or_default(),
            stored_schema: (!is_stored).then(|| schema(stored)),
            served: definition
                .versions()
                .filter(|served| flag(served, "served"))
                .map(|served| (text(served, "name").to_owned(), schema(served)))
                .collect(),
        }
    }

    /// Sets defaults.
    pub fn set_defaults(&self, value: &mut Value) {
        complete::set_defaults(&self.schema, value);
    }

    /// Sets defaults and removes what the schema doesn't specify, but keeps nulls.
    pub(crate) fn complete_applied(&self, value: &mut Value) {
        complete::set_defaults(&self.schema, value);
        complete::prune(&self.schema, value, true);
    }

    /// Returns the resource in another served version; only its schema is that of this version.
    pub(crate) fn in_version(&self, version: &str) -> Option<Self> {
        let (_, schema) = self.served.iter().find(|(name, _)| name == version)?;
        Some(Self {
            schema: schema.clone(),
            ..self.clone()
        })
    }

    /// Drops the nulls that the schema doesn't allow.
    pub(crate) fn drop_nulls(&self, value: &mut Value) {
        complete::drop_nulls(&self.schema, value);
    }

    /// Sets defaults and removes what the schema doesn't specify, nulls included.
    pub(crate) fn apply_schema(&self, value: &mut Value) {
        self.complete_applied(value);
        self.drop_nulls(value);
    }

    /// Returns true if both are versions of the same definition, which has not changed its spec or
    /// its accepted names in between.
    ///
    /// Upstream: `updateCustomResourceDefinition` of `crdHandler`
    pub fn is_same_definition(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Returns `spec.conversion.webhook` of the definition; `None` if a conversion changes only the
    /// `apiVersion`.
    pub fn conversion_webhook(&self) -> Option<&Value> {
        self.webhook.as_ref()
    }

    /// Sets the defaults of a stored object, by the schema of its own version. A conversion follows.
    ///
    /// Upstream: `unstructuredDefaulter`
    pub fn default_stored(&self, api_version: &str, value: &mut Value) {
        let own = text(value, "apiVersion");
        let schema = if own == api_version {
            Some(&self.schema)
        } else {
            let stored = self.stored_schema.as_ref();
            stored.filter(|_| own == self.stored_version)
        };
        if let Some(schema) = schema {
            complete::prune(schema, value, true);
            complete::set_defaults(schema, value);
            complete::drop_nulls(schema, value);
        }
    }

    /// Completes the conversion of a stored object to the served version, whose name with its group is
    /// `api_version`.
    ///
    /// Upstream: `schemaCoercingConverter`
    pub fn coerce_served(&self, api_version: &str, value: &mut Value) {
        coerce(&self.schema, value);
        value["apiVersion"] = json!(api_version);
    }

    /// Completes the conversion of an object to the stored version, whose schema may lack some of its
    /// fields.
    pub fn coerce_stored(&self, value: &mut Value) {
        if let Some(schema) = &self.stored_schema {
            coerce(schema, value);
        }
        value["apiVersion"] = json!(self.stored_version);
    }

    /// Returns the fields of an object that the schema doesn't specify.
    ///
    /// An object of a version without a schema has only such fields, and one of another group or kind
    /// has them only in its metadata. One whose metadata can't be decoded has none, since its decoding
    /// fails.
    pub(crate) fn unknown_fields(
        &self,
        api_version: &str,
        kind: &str,
        value: &Value,
    ) -> Vec<String> {
        let none = Schema::default();
        let found_version = text(value, "apiVersion");
        let schema = if found_version == api_version {
            &self.schema
        } else {
            &none
        };
        let (mut found, mut unknown) = (value.clone(), Vec::new());
        if has_wrong_metadata(schema, &mut found) {
            return unknown;
        }
        if let Some(metadata) = found.get_mut("metadata").filter(|found| found.is_object()) {
            unknown = schema::unknown_members("ObjectMeta", metadata)
                .into_iter()
                .map(|(path, _)| format!("metadata.{path}"))
                .collect();
        }
        if group_of(found_version) != group_of(api_version) || text(value, "kind") != kind {
            return unknown;
        }
        unknown.extend(complete::prune(schema, &mut found, true));
        let list = &mut |members: &mut Map<String, Value>, path: &str| {
            if let Some(metadata) = members.get_mut("metadata").filter(|it| it.is_object()) {
                let members = schema::unknown_members("ObjectMeta", metadata).into_iter();
                unknown.extend(members.map(|(member, _)| format!("{path}.metadata.{member}")));
            }
            Ok::<(), Infallible>(())
        };
        let visited = each_embedded(schema, &mut found, "", PathForm::Members, list);
        match visited {
            Ok(()) => unknown,
        }
    }

    /// Returns true if writes of the object change its generation.
    pub fn counts(&self, has_status: bool, new: &Value, old: &Value) -> bool {
        let rest = |value: &Value| {
            let mut members = value.as_object().cloned().unwrap_or_else(Map::new);
            members.remove("metadata");
            members.remove("apiVersion");
            if has_status {
                members.remove("status");
            }
            members
        };
        rest(new) != rest(old)
    }
}

/// Returns `spec.conversion.webhook` if the definition has this strategy.
fn webhook(definition: Definition<'_>) -> Option<Value> {
    let conversion = definition.0.pointer("/spec/conversion")?;
    let is_webhook = text(conversion, "strategy") == "Webhook";
    conversion.get("webhook").filter(|_| is_webhook).cloned()
}

/// Reports whether the metadata of an object, or of an embedded one, has values of a wrong type.
fn has_wrong_metadata(schema: &Schema, value: &mut Value) -> bool {
    let check = |metadata: &Value| {
        schema::normalize("ObjectMeta", metadata, UnknownMembers::Drop, "").map(|_| ())
    };
    let own = value.get("metadata").map_or(Ok(()), check);
    let check_embedded = &mut |members: &mut Map<String, Value>, _: &str| {
        let metadata = members.get("metadata").filter(|it| !it.is_null());
        metadata.map_or(Ok(()), check)
    };
    own.is_err() || each_embedded(schema, value, "", PathForm::Members, check_embedded).is_err()
}

/// Removes what a schema doesn't specify, and the nulls that it doesn't allow.
///
/// Upstream: `unstructuredSchemaCoercer`
fn coerce(schema: &Schema, value: &mut Value) {
    complete::prune(schema, value, true);
    complete::drop_nulls(schema, value);
}

/// Returns the warning for requests to a deprecated version.
///
/// Upstream: `deprecationWarning` in `getOrCreateServingInfoFor`
fn warning(definition: Definition<'_>, version: &Value) -> Option<String> {
    if !flag(version, "deprecated") {
        return None;
    }
    let own = version.get("deprecationWarning").and_then(Value::as_str);
    if let Some(own) = own {
        return Some(own.to_owned());
    }
    let name = text(version, "name");
    let (group, kind) = (definition.group(), definition.kind());
    let start = format!("{group}/{name} {kind} is deprecated");
    let replacement = definition
        .versions()
        .filter(|other| flag(other, "served") && !flag(other, "deprecated"))
        .map(|other| text(other, "name"))
        .filter(|other| super::by_priority(other, name).is_lt())
        .min_by(|one, other| super::by_priority(one, other));
    Some(match replacement {
        Some(better) => format!("{start}; use {group}/{better} {kind}"),
        None => start,
    })
}
