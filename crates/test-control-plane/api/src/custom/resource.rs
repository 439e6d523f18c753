//! A served version of a custom resource.

use kube_apimachinery::schema::{self, UnknownMembers};
use serde_json::{Map, Value, json};

use super::scale::Scale;
use super::schema::{Schema, flag, texts};
use crate::kinds::Kind;
use crate::members::text;
use crate::object::Draft;
use crate::status::{ApiError, ApiResult};

/// What a definition says about one of its versions.
#[derive(Debug)]
pub struct CustomResource {
    /// The kind of lists.
    pub list_kind: String,
    /// The `apiVersion` of stored objects.
    pub stored_version: String,
    /// The paths of `/scale`, if the version has it.
    pub scale: Option<Scale>,
    /// The columns of tables beside the name.
    pub columns: Vec<Column>,
    /// The warning of a deprecated version.
    pub warning: Option<String>,
    /// True if the definition is being deleted.
    pub terminating: bool,
    pub(crate) schema: Schema,
    /// The schema of the stored version, if it is another one.
    pub(super) stored_schema: Option<Schema>,
}

/// A column of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub path: String,
}

impl Column {
    pub(super) fn read_all(version: &Value) -> Vec<Self> {
        let columns = version
            .get("additionalPrinterColumns")
            .and_then(Value::as_array)
            .filter(|columns| !columns.is_empty());
        let Some(columns) = columns else {
            return vec![Self {
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
                path: ".metadata.creationTimestamp".to_owned(),
            }];
        };
        let read = |column: &Value| {
            let path = text(column, "jsonPath").to_owned();
            let description = text(column, "description");
            Self {
                name: text(column, "name").to_owned(),
                of: text(column, "type").to_owned(),
                format: text(column, "format").to_owned(),
                description: if description.is_empty() {
                    format!("Custom resource definition column (in JSONPath format): {path}")
                } else {
                    description.to_owned()
                },
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
                path,
            }
        };
        columns.iter().map(read).collect()
    }
}

impl CustomResource {
    /// Completes a request's object: metadata of the right types, defaults, no unspecified members.
    ///
    /// # Errors
    ///
    /// 400 for metadata of the wrong type.
    pub fn complete(&self, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
        let value = &mut draft.value;
        if let Some(metadata) = value.get_mut("metadata") {
            let sent = metadata.take();
            *metadata = schema::normalize_owned("ObjectMeta", sent, UnknownMembers::Drop, "")
                .map_err(|err| {
                    ApiError::bad_request(format!(
                        "{} in version {:?} cannot be handled as a {}: {err}",
                        kind.kind, kind.version, kind.kind
                    ))
                })?;
        }
        without_null_time(value);
        self.schema.set_defaults(value);
        self.schema.prune(value);
        self.schema.drop_nulls(value);
        Ok(())
    }

    /// Converts a stored object to the version that `kind` serves.
    pub fn to_served(&self, kind: &Kind, value: &mut Value) {
        self.schema.set_defaults(value);
        self.schema.prune(value);
        self.schema.drop_nulls(value);
        value["apiVersion"] = json!(kind.api_version());
    }

    /// Converts an object to the stored version, whose schema may lack some of its members.
    pub fn to_stored(&self, value: &mut Value) {
        if let Some(schema) = &self.stored_schema {
            schema.prune(value);
            schema.set_defaults(value);
        }
        value["apiVersion"] = json!(self.stored_version);
    }

    /// Returns the members of an object that the schema doesn't specify.
    ///
    /// An object of a version without a schema has only such members.
    pub fn unknown_fields(&self, kind: &Kind, value: &Value) -> Vec<String> {
        let none = Schema::default();
        let schema = if text(value, "apiVersion") == kind.api_version() {
            &self.schema
        } else {
            &none
        };
        let (mut found, mut unknown) = (value.clone(), Vec::new());
        if let Some(metadata) = found.get_mut("metadata").filter(|found| found.is_object()) {
            unknown = schema::unknown_members("ObjectMeta", metadata)
                .into_iter()
                .map(|(path, _)| format!("metadata.{path}"))
                .collect();
        }
        unknown.extend(schema.prune(&mut found));
        unknown
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

/// Removes the null creation time that the type of metadata writes.
fn without_null_time(value: &mut Value) {
    let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && metadata
            .get("creationTimestamp")
            .is_some_and(Value::is_null)
    {
        metadata.remove("creationTimestamp");
    }
}

/// Returns the warning for requests to a deprecated version.
///
/// Upstream: `deprecationWarning` in `getOrCreateServingInfoFor`
pub(super) fn warning(
    group: &str,
    kind: &str,
    version: &Value,
    versions: &[&Value],
) -> Option<String> {
    if !flag(version, "deprecated") {
        return None;
    }
    let own = version.get("deprecationWarning").and_then(Value::as_str);
    if let Some(own) = own {
        return Some(own.to_owned());
    }
    let name = text(version, "name");
    let start = format!("{group}/{name} {kind} is deprecated");
    let replacement = versions
        .iter()
        .filter(|other| flag(other, "served") && !flag(other, "deprecated"))
        .map(|other| text(other, "name"))
        .filter(|other| super::by_priority(other, name).is_lt())
        .min_by(|one, other| super::by_priority(one, other));
    Some(match replacement {
        Some(better) => format!("{start}; use {group}/{better} {kind}"),
        None => start,
    })
}

/// Returns the JSON path without its leading dot.
pub(super) fn bare(path: &str) -> &str {
    path.strip_prefix('.').unwrap_or(path)
}

/// Returns the selectable fields of a version: the paths.
pub(super) fn selectable(version: &Value) -> Vec<String> {
    let fields = version.get("selectableFields").and_then(Value::as_array);
    let paths = fields.into_iter().flatten();
    paths
        .map(|field| text(field, "jsonPath").to_owned())
        .filter(|path| !path.is_empty())
        .collect()
}

/// Returns the names under `names` in the status, which discovery shows.
pub(super) fn accepted(definition: &Value, member: &str) -> Vec<String> {
    let names = definition.pointer("/status/acceptedNames");
    names.map_or_else(Vec::new, |names| texts(names, member))
}
