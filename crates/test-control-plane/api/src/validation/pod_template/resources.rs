//! Rules of container resources.

use serde_json::{Map, Value};

use super::Errors;
use crate::validation::resource_names::{self, NamedFor, can_be_overcommitted, is_native, parsed};
use crate::validation::{FieldError, at};

/// Upstream: `validateContainerResourceRequirements`.
pub(super) fn validate(container: &Value, path: &str, errors: &mut Errors) {
    let Some(resources) = at(container, "/resources") else {
        return;
    };
    let (limits, requests) = (members(resources, "limits"), members(resources, "requests"));
    let path = format!("{path}.resources");
    for (name, quantity) in limits.into_iter().flatten() {
        one(name, quantity, &format!("{path}.limits[{name}]"), errors);
    }
    for (name, quantity) in requests.into_iter().flatten() {
        one(name, quantity, &format!("{path}.requests[{name}]"), errors);
        let Some(limit) = limits.and_then(|limits| limits.get(name)) else {
            if !can_be_overcommitted(name) {
                let detail = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(format!("{path}.limits"), detail));
            }
            continue;
        };
        let (Some(wanted), Some(most)) = (parsed(quantity), parsed(limit)) else {
            continue;
        };
        let relation = if wanted != most && !can_be_overcommitted(name) {
            "equal to"
        } else if wanted > most {
            "less than or equal to"
        } else {
            continue;
        };
        let limit = limit.as_str().unwrap_or_default();
        let detail = format!("must be {relation} {name} limit of {limit}");
        errors.push(FieldError::invalid(
            format!("{path}.requests"),
            quantity,
            &detail,
        ));
    }
}

fn members<'a>(resources: &'a Value, member: &str) -> Option<&'a Map<String, Value>> {
    resources.get(member)?.as_object()
}

/// Validates the name and quantity of one resource.
fn one(name: &str, quantity: &Value, field: &str, errors: &mut Errors) {
    resource_names::validate(name, NamedFor::Containers, field, errors);
    resource_names::quantity(quantity, !is_native(name), field, errors);
}
