//! Atomic parts of a configuration.
//!
//! Upstream: `findAtomics` of `k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch`

use serde_json::Value;

use super::types::{Form, Relation, TypeRef};
use crate::managed_fields::path::PathElement;

/// Returns the paths of the atomic lists, maps and objects in a value.
pub(crate) fn atomics(of: TypeRef<'_>, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(of, value, "", &mut found);
    found
}

fn visit(of: TypeRef<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    match (of.form(Some(value)), value) {
        (Form::Map(map), Value::Object(members)) => {
            if map.atomic {
                found.push(path.to_owned());
            }
            for (name, value) in members {
                if let Some(of) = map.field(name) {
                    let step = PathElement::field(name);
                    visit(of, value, &format!("{path}{step}"), found);
                }
            }
        }
        (Form::List(list), Value::Array(items)) => {
            if matches!(list.relation, Relation::Atomic) {
                found.push(path.to_owned());
            }
            for (index, value) in items.iter().enumerate() {
                visit(list.element, value, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}
