//! The schemas of the documents. With the feature `openapi` they come from `k8s-openapi`, with
//! descriptions; without it there are none.

#[cfg(feature = "openapi")]
mod delete_options;
#[cfg(feature = "openapi")]
mod enums;
#[cfg(feature = "openapi")]
mod generated;
#[cfg(feature = "openapi")]
mod overlay;

use std::sync::Arc;

use kube_apimachinery::schema::Version;
use serde_json::{Map, Value};

use crate::kinds::Kind;

/// Returns the schemas of a group version's kinds and subresources and of all types they contain,
/// by name, with the fields of a version of the types.
#[cfg(feature = "openapi")]
pub(super) fn of(
    group_version: (&str, &str),
    rows: &[Arc<Kind>],
    types: Version,
) -> Map<String, Value> {
    let mut schemas = generated::of(group_version, rows);
    overlay::apply(&mut schemas, types);
    schemas
}

/// Returns no schemas.
#[cfg(not(feature = "openapi"))]
pub(super) fn of(
    _group_version: (&str, &str),
    _rows: &[Arc<Kind>],
    _types: Version,
) -> Map<String, Value> {
    Map::new()
}

/// Returns the schema name of a kind, if it has one.
pub(super) fn name_of<'a>(
    schemas: &'a Map<String, Value>,
    group: &str,
    version: &str,
    kind: &str,
) -> Option<&'a str> {
    let is_it = |schema: &Value| {
        let kinds = schema.get("x-kubernetes-group-version-kind");
        let mut kinds = kinds.and_then(Value::as_array).into_iter().flatten();
        kinds.any(|k| k["group"] == group && k["version"] == version && k["kind"] == kind)
    };
    let mut schemas = schemas.iter();
    schemas.find_map(|(name, schema)| is_it(schema).then_some(name.as_str()))
}
