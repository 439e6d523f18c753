//! The types of the documents. They come from the generated types of `k8s-openapi`, descriptions
//! included, if the feature `openapi` is on; without it the documents describe no types.

#[cfg(feature = "openapi")]
mod enums;
#[cfg(feature = "openapi")]
mod generated;
#[cfg(feature = "openapi")]
mod overlay;

use serde_json::{Map, Value};

/// The types of a group version's kinds and subresources, and what these are made of, by name.
#[cfg(feature = "openapi")]
pub(super) fn of(group: &str, version: &str) -> Map<String, Value> {
    let mut schemas = generated::of(group, version);
    overlay::apply(&mut schemas);
    schemas
}

/// No types are known.
#[cfg(not(feature = "openapi"))]
pub(super) fn of(_group: &str, _version: &str) -> Map<String, Value> {
    Map::new()
}

/// The name of the type of a kind, if it is described.
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
