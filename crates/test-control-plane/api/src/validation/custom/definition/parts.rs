//! Validation of a version's schema, subresources and columns.

use serde_json::{Value, json};

#[cfg(feature = "cel")]
use super::rules;
use super::structural;
use crate::members::{list, text};
use crate::status::FieldError;

/// The types of columns.
const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

/// The formats of columns.
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// The member with the selectable fields.
const SELECTABLE: &str = "selectableFields";

/// The largest number of selectable fields.
const SELECTABLE_MAX: usize = 8;

/// A part of a version. The internal type of upstream moves one that all versions share from
/// the versions to the spec, and so do the paths of errors.
pub(super) struct Part {
    /// Its member in a version.
    pub(super) member: &'static str,
    /// Its member in the internal spec.
    pub(super) shared_member: &'static str,
    /// Checks the part of a version at a path.
    check: fn(&Value, &str, &mut Vec<FieldError>),
}

/// The parts, in the order of their checks.
const PARTS: [Part; 4] = [
    Part {
        member: "schema",
        shared_member: "validation",
        check: check_schema,
    },
    Part {
        member: "subresources",
        shared_member: "subresources",
        check: check_subresources,
    },
    Part {
        member: "additionalPrinterColumns",
        shared_member: "additionalPrinterColumns",
        check: check_columns,
    },
    Part {
        member: SELECTABLE,
        shared_member: SELECTABLE,
        check: check_selectable,
    },
];

/// Returns the parts that all versions share, and those that differ between versions.
///
/// Upstream: `Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec`
pub(super) fn split(versions: &[&Value]) -> (Vec<&'static Part>, Vec<&'static Part>) {
    let found = |version: &Value, member: &str| {
        let found = version.get(member).cloned().unwrap_or_default();
        let is_empty = found.as_array().is_some_and(Vec::is_empty);
        if is_empty { Value::Null } else { found }
    };
    let is_shared = |member: &str| {
        let mut pairs = versions.windows(2);
        pairs.all(|pair| found(pair[0], member) == found(pair[1], member))
    };
    PARTS.iter().partition(|part| is_shared(part.member))
}

/// Checks the parts of a version, or those that all versions share. `at` returns the path of a part,
/// and `apart` is the error of selectable fields without the schema among these parts.
///
/// Upstream rejects selectable fields that differ between versions with one schema, and the
/// same fields of versions with different schemas, because it looks for the schema in the same place.
pub(super) fn check(
    parts: &[&Part],
    version: &Value,
    at: impl Fn(&Part) -> String,
    apart: &str,
    errors: &mut Vec<FieldError>,
) {
    let has_schema = parts.iter().any(|part| part.member == "schema");
    for part in parts {
        let at = at(part);
        if part.member != SELECTABLE || has_schema {
            (part.check)(version, &at, errors);
        } else if list(version, SELECTABLE).next().is_some() {
            errors.push(FieldError::invalid(at, &json!(""), apart));
        }
    }
}

/// Upstream: `validateCustomResourceDefinitionValidation`
fn check_schema(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(schema) = version.pointer("/schema/openAPIV3Schema") else {
        return;
    };
    let at = format!("{at}.openAPIV3Schema");
    let mut found = Vec::new();
    structural::check_root(schema, &at, &mut found);
    #[cfg(feature = "cel")]
    if found.is_empty() {
        rules::check(schema, &at, &mut found);
    }
    errors.append(&mut found);
}

/// Upstream: `ValidateCustomResourceDefinitionSubresources`
fn check_subresources(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let scale = version.pointer("/subresources/scale");
    let Some(scale) = scale.filter(|scale| scale.is_object()) else {
        return;
    };
    let at = format!("{at}.scale");
    for (member, parent) in [
        ("specReplicasPath", ".spec"),
        ("statusReplicasPath", ".status"),
    ] {
        let (field, path) = (format!("{at}.{member}"), text(scale, member));
        if path.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if !is_simple(path) {
            errors.push(not_simple(field, path));
        } else if !path.starts_with(&format!("{parent}.")) {
            let detail = format!("should be a json path under {parent}");
            errors.push(FieldError::invalid(field, &json!(path), &detail));
        }
    }
    let path = text(scale, "labelSelectorPath");
    let field = format!("{at}.labelSelectorPath");
    if path.is_empty() {
        return;
    }
    if !is_simple(path) {
        errors.push(not_simple(field, path));
    } else if !path.starts_with(".spec.") && !path.starts_with(".status.") {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(field, &json!(path), detail));
    }
}

fn check_columns(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (index, column) in list(version, "additionalPrinterColumns").enumerate() {
        check_column(column, &format!("{at}[{index}]"), errors);
    }
}

/// Upstream: `ValidateCustomResourceColumnDefinition`
fn check_column(column: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if text(column, "name").is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    }
    let detail = format!("must be one of {}", TYPES.join(","));
    match text(column, "type") {
        "" => errors.push(FieldError::required(format!("{at}.type"), &detail)),
        known if TYPES.contains(&known) => {}
        other => errors.push(FieldError::invalid(
            format!("{at}.type"),
            &json!(other),
            &detail,
        )),
    }
    let format = text(column, "format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(
            format!("{at}.format"),
            &json!(format),
            &detail,
        ));
    }
    let (field, path) = (format!("{at}.JSONPath"), text(column, "jsonPath"));
    if path.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if !is_simple(path) {
        errors.push(not_simple(field, path));
    }
}

/// Upstream: `ValidateCustomResourceSelectableFields`
fn check_selectable(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let fields: Vec<&Value> = list(version, "selectableFields").collect();
    if fields.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(
            at,
            fields.len(),
            i64::try_from(SELECTABLE_MAX).unwrap_or_default(),
        ));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let (at, path) = (format!("{at}[{index}].jsonPath"), text(field, "jsonPath"));
        if path.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        if !is_simple(path) {
            errors.push(not_simple(at, path));
            continue;
        }
        if path == ".metadata" || path.starts_with(".metadata.") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(at, &json!(path), detail));
            continue;
        }
        let mut schema = version.pointer("/schema/openAPIV3Schema");
        for step in path.split('.').skip(1) {
            schema = schema.and_then(|schema| schema.get("properties")?.get(step));
        }
        match schema.map(|schema| text(schema, "type")) {
            None => {
                let detail = "does not refer to a valid field";
                errors.push(FieldError::invalid(at.clone(), &json!(path), detail));
            }
            Some("string" | "boolean" | "integer") => {}
            Some(_) => {
                let detail = "must point to a field of type string, boolean or integer";
                errors.push(FieldError::invalid(at.clone(), &json!(path), detail));
            }
        }
        if seen.contains(&path) {
            errors.push(FieldError::duplicate(at, &json!(path)));
        }
        seen.push(path);
    }
}

/// Returns true if a JSON path may be used: it begins with a dot.
fn is_simple(path: &str) -> bool {
    path.starts_with('.') && path.len() > 1
}

fn not_simple(field: String, path: &str) -> FieldError {
    let detail = "must be a simple json path starting with .";
    FieldError::invalid(field, &json!(path), detail)
}
