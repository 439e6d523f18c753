//! Validation of a version's schema.
//!
//! Upstream: `validateCustomResourceDefinitionValidation`

use serde_json::{Value, json};

use super::{defaults, internal, structural, walk};
use crate::custom::flag;
use crate::status::FieldError;

/// The fields of the root, by their Go names, that a schema with the subresource `status` may have.
const AT_ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// Checks the schema of a version at a path. `with_status` tells whether the version has the subresource
/// `status`.
pub(super) fn check(schema: &Value, at: &str, with_status: bool, errors: &mut Vec<FieldError>) {
    let before = errors.len();
    if with_status {
        at_root(schema, at, errors);
    }
    if flag(schema, "nullable") {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(format!("{at}.nullable"), detail));
    }
    let structural = structural::errors(schema, at).map(|found| match found.as_slice() {
        [] => defaults::errors(schema, at),
        _ => found,
    });
    let is_structural = structural.as_ref().is_ok_and(Vec::is_empty);
    let unreadable = match structural {
        Ok(found) => {
            errors.extend(found);
            None
        }
        Err(why) => Some(FieldError::invalid(at, &json!(""), &why)),
    };
    errors.extend(walk::errors(schema, at, is_structural));
    if errors.len() == before {
        errors.extend(unreadable);
    }
}

/// Checks the root of a schema whose `status` is validated apart.
fn at_root(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (go_name, found) in internal::set_members(schema) {
        if go_name == "Type" {
            if *found != "object" {
                let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                              status subresource is enabled";
                errors.push(FieldError::invalid(format!("{at}.type"), found, detail));
                return;
            }
        } else if !AT_ROOT.contains(&go_name) {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is \
                 enabled",
                AT_ROOT.join(" ")
            );
            errors.push(FieldError::invalid_text(
                at,
                &internal::schema(schema),
                &detail,
            ));
            return;
        }
    }
}
