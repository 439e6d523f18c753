//! The metadata of embedded resources: `x-kubernetes-embedded-resource`.
//!
//! Upstream: `schemaobjectmeta.CoerceWithOptions` of `k8s.io/apiextensions-apiserver`.

use serde_json::Value;

use super::schema::Schema;

/// Calls `visit` with the metadata of each embedded resource below `path`, and its path. The
/// object at the empty path isn't embedded.
///
/// # Errors
///
/// The first one of `visit`.
pub(crate) fn each_metadata<E>(
    schema: &Schema,
    value: &mut Value,
    path: &str,
    visit: &mut dyn FnMut(&mut Value, &str) -> Result<(), E>,
) -> Result<(), E> {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let at = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                let is_metadata = schema.embedded && !path.is_empty() && name == "metadata";
                if is_metadata && !value.is_null() {
                    visit(value, &at)?;
                } else if let Some(inner) = schema.member(name) {
                    each_metadata(inner, value, &at, visit)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    each_metadata(inner, item, &format!("{path}[{index}]"), visit)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}
