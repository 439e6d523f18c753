//! Validation of a definition.
//!
//! Upstream: `ValidateCustomResourceDefinition` and `ValidateCustomResourceDefinitionUpdate`.

mod conversion;
mod defaults;
mod internal;
mod lists;
mod names;
mod parts;
mod place;
#[cfg(feature = "cel")]
mod rules;
mod schemas;
mod structural;
mod texts;
mod walk;

use serde_json::{Value, json};

use crate::custom::{self, Definition, approval_annotation, flag, is_protected};
use crate::go::url;
use crate::members::text;
use crate::status::FieldError;
use crate::validation::{dns_subdomain, letter_label};
use parts::Parts;
use texts::{invalid_label, one_of};

/// The annotation in field paths.
const APPROVAL_FIELD: &str = "metadata.annotations[api-approved.kubernetes.io]";

/// The proposal that explains the approval of protected groups.
const APPROVAL_GUIDE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// Returns the errors of a definition, besides those of its metadata. `old` is the one before an
/// update.
pub(in crate::validation) fn validate(value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let (new, old) = (Definition(value), old.map(Definition));
    let mut errors = Vec::new();
    if old.is_none() {
        name(new, &mut errors);
    }
    spec(new, old, &mut errors);
    if let Some(old) = old {
        immutable(new, old, &mut errors);
    }
    status(value, &mut errors);
    stored_versions(new, &mut errors);
    approval(new, old, &mut errors);
    let preserves =
        |definition: Definition<'_>| flag(&definition.0["spec"], "preserveUnknownFields");
    if preserves(new) && !old.is_some_and(preserves) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        let field = "spec.preserveUnknownFields";
        errors.push(FieldError::invalid(field, &json!(true), detail));
    }
    errors
}

/// Returns the errors of a definition's status.
///
/// Upstream: `ValidateCustomResourceDefinitionStatus`
pub(in crate::validation) fn status(value: &Value, errors: &mut Vec<FieldError>) {
    if let Some(accepted) = value.pointer("/status/acceptedNames") {
        names::check(accepted, "status.acceptedNames", errors);
    }
}

fn name(definition: Definition<'_>, errors: &mut Vec<FieldError>) {
    let name = definition.name();
    let plural = text(&definition.0["spec"]["names"], "plural");
    if name != format!("{plural}.{}", definition.group()) && !name.is_empty() {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &json!(name), detail));
    }
}

/// Upstream: `validateCustomResourceDefinitionSpec`
fn spec(definition: Definition<'_>, old: Option<Definition<'_>>, errors: &mut Vec<FieldError>) {
    let spec = &definition.0["spec"];
    let group = definition.group();
    let wrong = dns_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if wrong.is_empty() && !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &json!(group), detail));
    } else {
        invalid_label("spec.group", group, "", &wrong, errors);
    }
    one_of(
        "spec.scope",
        text(spec, "scope"),
        &["Cluster", "Namespaced"],
        errors,
    );
    let versions: Vec<&Value> = definition.versions().collect();
    let preserves = flag(spec, "preserveUnknownFields");
    for (index, version) in versions.iter().enumerate() {
        let is_missing = version.pointer("/schema/openAPIV3Schema").is_none();
        let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
        if is_missing {
            errors.push(FieldError::required(field, ""));
        }
    }
    if preserves && versions.iter().any(|version| has_default(version)) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            &json!(true),
            detail,
        ));
    }
    let parts = Parts::of(&versions);
    for (index, version) in versions.iter().enumerate() {
        let (at, name) = (format!("spec.versions[{index}]"), text(version, "name"));
        invalid_label(&format!("{at}.name"), name, "", &letter_label(name), errors);
        deprecation(version, &at, errors);
        let with_status = parts.has_status(&versions, name);
        parts.check_own(version, &at, with_status, errors);
    }
    let shown = internal::versions(spec, |member| parts.is_shared(member));
    of_versions(&versions, &shown, errors);
    if let Some(first) = versions.first().map(|version| text(version, "name")) {
        let wrong = if first.is_empty() {
            Vec::new()
        } else {
            letter_label(first)
        };
        invalid_label("spec.version", first, "", &wrong, errors);
    }
    names::check_present(&spec["names"], errors);
    names::check(&spec["names"], "spec.names", errors);
    if let Some(version) = versions.first() {
        let with_status = versions.iter().any(|version| parts::has_status(version));
        parts.check_shared(version, with_status, errors);
    }
    conversion::check(spec, preserves, old, errors);
}

fn has_default(version: &Value) -> bool {
    fn any(schema: &Value) -> bool {
        schema.get("default").is_some() || walk::inner(schema).any(|(_, _, inner)| any(inner))
    }
    version.pointer("/schema/openAPIV3Schema").is_some_and(any)
}

/// Upstream: `validateDeprecationWarning`
fn deprecation(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return;
    };
    let mut wrong = |detail: &str| {
        let field = format!("{at}.deprecationWarning");
        errors.push(FieldError::invalid(field, &json!(warning), detail));
    };
    if !flag(version, "deprecated") {
        return wrong("can only be set for deprecated versions");
    }
    if warning.len() > 256 {
        wrong("must be <= 256 characters long");
    }
    if warning.is_empty() {
        wrong("must not be an empty string");
    }
    let is_print = |c: char| c == ' ' || !(c.is_control() || c.is_whitespace());
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| !is_print(*c)) {
        wrong(&format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {index}"
        ));
    }
}

/// Checks the rules between versions.
///
/// `shown` is the text of the versions in errors.
fn of_versions(versions: &[&Value], shown: &str, errors: &mut Vec<FieldError>) {
    let field = "spec.versions";
    let names = || versions.iter().map(|version| text(version, "name"));
    if names()
        .enumerate()
        .any(|(index, name)| names().take(index).any(|other| other == name))
    {
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid_text(field, shown, detail));
    }
    let stored = versions.iter().filter(|version| flag(version, "storage"));
    if stored.count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid_text(field, shown, detail));
    }
}

/// Checks the stored versions against the versions.
///
/// Upstream: `ValidateCustomResourceDefinitionStoredVersions`
fn stored_versions(definition: Definition<'_>, errors: &mut Vec<FieldError>) {
    let field = "status.storedVersions";
    let stored = custom::texts(&definition.0["status"], "storedVersions");
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(field, &Value::Null, detail));
        return;
    }
    let mut missing: Vec<(usize, &String)> = stored.iter().enumerate().collect();
    for version in definition.versions() {
        let name = text(version, "name");
        let before = missing.len();
        missing.retain(|(_, stored)| *stored != name);
        if flag(version, "storage") && missing.len() == before {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(field, &json!(stored), &detail));
        }
    }
    for (index, version) in missing {
        let detail = format!(
            "missing from spec.versions; {version} was previously a storage version, and must remain \
             in spec.versions until a storage migration ensures no data remains persisted in \
             {version} and removes {version} from status.storedVersions"
        );
        let field = format!("{field}[{index}]");
        errors.push(FieldError::invalid(field, &json!(version), &detail));
    }
}

/// Checks the approval of a protected group, unless an update keeps its state.
///
/// Upstream: `validateAPIApproval`
fn approval(new: Definition<'_>, old: Option<Definition<'_>>, errors: &mut Vec<FieldError>) {
    if !is_protected(new.group()) {
        return;
    }
    let state = |definition: Definition<'_>| Approval::of(approval_annotation(definition.0));
    if old.is_some_and(|old| state(old) == state(new)) {
        return;
    }
    let start = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
    match state(new) {
        Approval::Given | Approval::Bypassed => {}
        Approval::Missing => {
            let detail = format!("{start}, {APPROVAL_GUIDE}");
            errors.push(FieldError::required(APPROVAL_FIELD, &detail));
        }
        Approval::Invalid => {
            let detail = format!(
                "{start} with either a URL or a reason starting with \"unapproved\", \
                 {APPROVAL_GUIDE}"
            );
            let found = approval_annotation(new.0).unwrap_or_default();
            errors.push(FieldError::invalid(APPROVAL_FIELD, &json!(found), &detail));
        }
    }
}

/// Upstream: `APIApprovalState`
#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Bypassed,
    Given,
    Invalid,
}

impl Approval {
    /// Upstream: `GetAPIApprovalState`
    fn of(annotation: Option<&str>) -> Self {
        match annotation {
            None | Some("") => Self::Missing,
            Some(found) if found.starts_with("unapproved") => Self::Bypassed,
            Some(found) if is_url(found) => Self::Given,
            Some(_) => Self::Invalid,
        }
    }
}

/// Returns true for a URL with a scheme and a host.
fn is_url(text: &str) -> bool {
    let parts = text.split_once("://");
    let has_both = parts.is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.starts_with(['/', '?'])
    });
    has_both && url::check_request(text).is_ok()
}

/// Checks the fields that an update can't change.
fn immutable(new: Definition<'_>, old: Definition<'_>, errors: &mut Vec<FieldError>) {
    let fields = [
        ("spec.scope", old.is_established()),
        ("spec.names.kind", old.is_established()),
        ("spec.group", true),
        ("spec.names.plural", true),
    ];
    for (field, _) in fields.into_iter().filter(|(_, is_sealed)| *is_sealed) {
        let pointer = format!("/{}", field.replace('.', "/"));
        let (before, after) = (old.0.pointer(&pointer), new.0.pointer(&pointer));
        if before != after {
            let after = after.unwrap_or(&Value::Null);
            errors.push(FieldError::invalid(field, after, "field is immutable"));
        }
    }
}
