//! The objects embedded in a custom resource: `x-kubernetes-embedded-resource`.
//!
//! Upstream: `schemaobjectmeta.CoerceWithOptions` of `k8s.io/apiextensions-apiserver`.

use serde_json::{Map, Value};

use super::schema::Schema;

/// The form of the path of a field that only `additionalProperties` specify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathForm {
    /// `spec.name`, as lists of unknown fields have it.
    Members,
    /// `spec[name]`, as errors have it.
    Keys,
}

/// A visit of the fields of an embedded object, and of its path.
pub(crate) type Visit<'a, E> = dyn FnMut(&mut Map<String, Value>, &str) -> Result<(), E> + 'a;

/// Calls `visit` with the fields of each embedded object below `path`, and its path. The object at
/// the empty path isn't embedded.
///
/// # Errors
///
/// The first one of `visit`.
pub(crate) fn each_embedded<E>(
    schema: &Schema,
    value: &mut Value,
    path: &str,
    form: PathForm,
    visit: &mut Visit<'_, E>,
) -> Result<(), E> {
    match value {
        Value::Object(members) => {
            if schema.embedded && !path.is_empty() {
                visit(members, path)?;
            }
            for (name, value) in members {
                let Some(inner) = schema.member(name) else {
                    continue;
                };
                let at = if path.is_empty() {
                    name.clone()
                } else if form == PathForm::Keys && !schema.properties.contains_key(name) {
                    format!("{path}[{name}]")
                } else {
                    format!("{path}.{name}")
                };
                each_embedded(inner, value, &at, form, visit)?;
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    each_embedded(inner, item, &format!("{path}[{index}]"), form, visit)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}
