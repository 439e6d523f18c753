//! Rules of container resources.

use serde_json::{Map, Value};

use crate::status::FieldError;
use crate::validation::place::{Errors, Place};
use crate::validation::resource_names::{self, NamedFor, can_be_overcommitted, is_native, parsed};

/// Upstream: `validateContainerResourceRequirements`.
pub(in crate::validation) fn container_resources(resources: &Place<'_>, errors: &mut Errors) {
    let path = resources.path();
    let amounts = |member: &str| resources.value.get(member).and_then(Value::as_object);
    let (limits, requests) = (amounts("limits"), amounts("requests"));
    for (name, quantity) in limits.into_iter().flatten() {
        one(name, quantity, &format!("{path}.limits[{name}]"), errors);
    }
    for (name, quantity) in requests.into_iter().flatten() {
        one(name, quantity, &format!("{path}.requests[{name}]"), errors);
        errors.extend(against_limit(name, quantity, limits, &path));
    }
}

/// Returns the error of a request that doesn't suit its limit.
fn against_limit(
    name: &str,
    request: &Value,
    limits: Option<&Map<String, Value>>,
    path: &str,
) -> Option<FieldError> {
    let Some(limit) = limits.and_then(|limits| limits.get(name)) else {
        let detail = "Limit must be set for non overcommitable resources";
        let error = FieldError::required(format!("{path}.limits"), detail);
        return Some(error).filter(|_| !can_be_overcommitted(name));
    };
    let (wanted, most) = (parsed(request)?, parsed(limit)?);
    let relation = if wanted != most && !can_be_overcommitted(name) {
        "equal to"
    } else if wanted > most {
        "less than or equal to"
    } else {
        return None;
    };
    let limit = limit.as_str().unwrap_or_default();
    let detail = format!("must be {relation} {name} limit of {limit}");
    Some(FieldError::invalid(
        format!("{path}.requests"),
        request,
        &detail,
    ))
}

/// Validates the name and quantity of one resource.
fn one(name: &str, quantity: &Value, field: &str, errors: &mut Errors) {
    resource_names::validate(name, NamedFor::Containers, field, errors);
    resource_names::quantity(quantity, !is_native(name), field, errors);
}
