//! Validation of a version's schema, subresources, columns and selectable fields.

use serde_json::{Value, json};

use super::schemas;
use crate::custom::{Schema, SchemaType, Step, field_path};
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

/// The fields of a version that may be shared, and the field of the internal spec that has a
/// shared one, in the order of their checks.
const MEMBERS: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// The types of selectable fields.
const SELECTABLE: [SchemaType; 3] = [SchemaType::String, SchemaType::Boolean, SchemaType::Integer];

/// The largest number of selectable fields.
const SELECTABLE_MAX: usize = 8;

/// The parts of versions. The internal type of upstream moves one that all versions share from
/// the versions to the spec, and so do the paths of errors.
pub(super) struct Parts {
    /// The fields that all versions share.
    shared: Vec<&'static str>,
}

/// The place of the parts under validation.
struct Place<'a> {
    at: &'a str,
    is_shared: bool,
    with_status: bool,
}

impl Parts {
    /// Upstream: `Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec`
    pub(super) fn of(versions: &[&Value]) -> Self {
        let is_shared = |member: &str| {
            let mut pairs = versions.windows(2);
            pairs.all(|pair| pair[0].get(member) == pair[1].get(member))
        };
        let names = MEMBERS.iter().map(|(member, _)| *member);
        Self {
            shared: names.filter(|member| is_shared(member)).collect(),
        }
    }

    /// Reports whether all versions share a part.
    pub(super) fn is_shared(&self, member: &str) -> bool {
        self.shared.contains(&member)
    }

    /// Reports whether a version has a status.
    ///
    /// Upstream: `getSubresourcesForVersion`
    pub(super) fn has_status(&self, versions: &[&Value], name: &str) -> bool {
        let mut versions = versions.iter();
        let version = if self.is_shared("subresources") {
            versions.next()
        } else {
            versions.find(|version| text(version, "name") == name)
        };
        version.is_some_and(|version| has_status(version))
    }

    /// Checks the parts that a version doesn't share.
    pub(super) fn check_own(
        &self,
        version: &Value,
        at: &str,
        with_status: bool,
        errors: &mut Vec<FieldError>,
    ) {
        let place = Place {
            at,
            is_shared: false,
            with_status,
        };
        self.check(version, &place, errors);
    }

    /// Checks the parts that all versions share.
    pub(super) fn check_shared(
        &self,
        version: &Value,
        with_status: bool,
        errors: &mut Vec<FieldError>,
    ) {
        let place = Place {
            at: "spec",
            is_shared: true,
            with_status,
        };
        self.check(version, &place, errors);
    }

    fn check(&self, version: &Value, place: &Place<'_>, errors: &mut Vec<FieldError>) {
        for (member, shared_member) in MEMBERS {
            let Some(part) = version.get(member) else {
                continue;
            };
            if self.is_shared(member) != place.is_shared {
                continue;
            }
            let shown = if place.is_shared {
                shared_member
            } else {
                member
            };
            let at = format!("{}.{shown}", place.at);
            match member {
                "schema" => {
                    if let Some(schema) = part.get("openAPIV3Schema") {
                        let at = format!("{at}.openAPIV3Schema");
                        schemas::check(schema, &at, place.with_status, errors);
                    }
                }
                "subresources" => check_subresources(part, &at, errors),
                "additionalPrinterColumns" => {
                    for (index, column) in list(version, member).enumerate() {
                        check_column(column, &format!("{at}[{index}]"), errors);
                    }
                }
                _ => self.check_selectable(version, &at, place, errors),
            }
        }
    }

    /// Checks selectable fields. Upstream rejects those that differ between versions with one schema,
    /// and the same fields of versions with different schemas, because it looks for the schema in the
    /// same place.
    ///
    /// Upstream: `ValidateCustomResourceSelectableFields`
    fn check_selectable(
        &self,
        version: &Value,
        at: &str,
        place: &Place<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        let fields: Vec<&Value> = list(version, "selectableFields").collect();
        let schema = version.pointer("/schema/openAPIV3Schema");
        let schema = schema.filter(|_| self.is_shared("schema") == place.is_shared);
        let Some(schema) = schema.filter(|_| !fields.is_empty()) else {
            let detail = if place.is_shared {
                "may only be set when validations.schema is included"
            } else {
                "may only be set when `version.schema.openAPIV3Schema` is not included"
            };
            if !fields.is_empty() {
                errors.push(FieldError::invalid(at, &json!(""), detail));
            }
            return;
        };
        let schema = Schema::read(schema);
        let mut known: Vec<Vec<Step>> = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            let (at, path) = (format!("{at}[{index}].jsonPath"), text(field, "jsonPath"));
            let mut wrong = |detail: &str| {
                errors.push(FieldError::invalid(at.clone(), &json!(path), detail));
            };
            if path.is_empty() {
                errors.push(FieldError::required(at, ""));
                continue;
            }
            let (steps, found) = match field_path(path, &schema, false) {
                Ok(found) => found,
                Err(why) => {
                    wrong(&format!("is an invalid path: {why}"));
                    continue;
                }
            };
            if steps.first() == Some(&Step::Member("metadata".to_owned())) {
                wrong("must not point to fields in metadata");
            }
            let of = found.and_then(|found| found.of);
            if !of.is_some_and(|of| SELECTABLE.contains(&of)) {
                wrong(
                    "must point to a field of type string, boolean or integer. Enum string fields \
                     and strings with formats are allowed.",
                );
            }
            if known.contains(&steps) {
                errors.push(FieldError::duplicate(at, &json!(path)));
            } else {
                known.push(steps);
            }
        }
        if known.len() > SELECTABLE_MAX {
            errors.push(FieldError::too_many(
                at,
                known.len(),
                i64::try_from(SELECTABLE_MAX).unwrap_or_default(),
            ));
        }
    }
}

/// Reports whether a version has the subresource `status`.
pub(super) fn has_status(version: &Value) -> bool {
    version.pointer("/subresources/status").is_some()
}

/// Upstream: `ValidateCustomResourceDefinitionSubresources`
fn check_subresources(part: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = part.get("scale") else {
        return;
    };
    for (member, parents, detail) in [
        ("specReplicasPath", [".spec."].as_slice(), ".spec"),
        ("statusReplicasPath", &[".status."], ".status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "either .spec or .status",
        ),
    ] {
        let (field, path) = (format!("{at}.scale.{member}"), text(scale, member));
        if path.is_empty() {
            if member != "labelSelectorPath" {
                errors.push(FieldError::required(field, ""));
            }
        } else if !path.starts_with('.') {
            errors.push(not_simple(field, path));
        } else if !parents.iter().any(|parent| path.starts_with(parent)) {
            let detail = format!("should be a json path under {detail}");
            errors.push(FieldError::invalid(field, &json!(path), &detail));
        }
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
    } else if !path.starts_with('.') {
        errors.push(not_simple(field, path));
    }
}

fn not_simple(field: String, path: &str) -> FieldError {
    let detail = "must be a simple json path starting with .";
    FieldError::invalid(field, &json!(path), detail)
}
