//! Validation of a definition.
//!
//! Upstream: `ValidateCustomResourceDefinition` and `ValidateCustomResourceDefinitionUpdate`.

mod internal;
mod names;
mod parts;
#[cfg(feature = "cel")]
mod rules;
mod structural;

use serde_json::{Value, json};

use crate::custom::{Definition, approval_annotation, flag, is_protected, texts};
use crate::members::text;
use crate::status::FieldError;
use crate::validation::{dns_subdomain, letter_label};
use parts::Part;

/// The annotation in field paths.
const APPROVAL_FIELD: &str = "metadata.annotations[api-approved.kubernetes.io]";

/// The proposal that explains the approval of protected groups.
const APPROVAL_GUIDE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// Returns the errors of a definition, besides those of its metadata. `old` is the one before an
/// update.
pub(in crate::validation) fn validate(value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let definition = Definition(value);
    let mut errors = Vec::new();
    if let Some(old) = old {
        immutable(definition, Definition(old), &mut errors);
        if !errors.is_empty() {
            return errors;
        }
    }
    let null = Value::Null;
    let spec = value.get("spec").unwrap_or(&null);
    head(definition, &mut errors);
    let versions: Vec<&Value> = definition.versions().collect();
    let (shared, own) = parts::split(&versions);
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let name = text(version, "name");
        for message in letter_label(name) {
            errors.push(FieldError::invalid(
                format!("{at}.name"),
                &json!(name),
                message,
            ));
        }
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            errors.push(FieldError::required(
                format!("{at}.schema.openAPIV3Schema"),
                "",
            ));
        }
        let apart = "may only be set when `version.schema.openAPIV3Schema` is not included";
        let path = |part: &Part| format!("{at}.{}", part.member);
        parts::check(&own, version, path, apart, &mut errors);
    }
    let shown = internal::versions(spec, |member| shared.iter().any(|p| p.member == member));
    of_versions(&versions, &shown, &mut errors);
    names::check(spec.get("names").unwrap_or(&null), &mut errors);
    if let Some(version) = versions.first() {
        let apart = "may only be set when validations.schema is included";
        let path = |part: &Part| format!("spec.{}", part.shared_member);
        parts::check(&shared, version, path, apart, &mut errors);
    }
    conversion(spec.get("conversion").unwrap_or(&null), &mut errors);
    stored_versions(definition, &versions, &mut errors);
    approval(definition, &mut errors);
    if flag(spec, "preserveUnknownFields") {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        let field = "spec.preserveUnknownFields";
        errors.push(FieldError::invalid(field, &json!(true), detail));
    }
    errors
}

/// Checks name, group and scope.
fn head(definition: Definition<'_>, errors: &mut Vec<FieldError>) {
    let (name, group) = (definition.name(), definition.group());
    let plural = definition
        .0
        .pointer("/spec/names/plural")
        .and_then(Value::as_str);
    let wanted = format!("{}.{group}", plural.unwrap_or_default());
    if name != wanted && !name.is_empty() {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &json!(name), detail));
    }
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else {
        let messages = dns_subdomain(group);
        if messages.is_empty() && !group.contains('.') {
            let detail = "should be a domain with at least one dot";
            errors.push(FieldError::invalid("spec.group", &json!(group), detail));
        }
        for message in messages {
            errors.push(FieldError::invalid("spec.group", &json!(group), message));
        }
    }
    let scope = definition
        .0
        .pointer("/spec/scope")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match scope {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported(
            "spec.scope",
            &json!(other),
            &["Cluster", "Namespaced"],
        )),
    }
}

/// Checks the rules between versions.
///
/// `shown` is the text of the versions in errors.
fn of_versions(versions: &[&Value], shown: &str, errors: &mut Vec<FieldError>) {
    let field = "spec.versions";
    let mut seen: Vec<&str> = Vec::new();
    let mut is_twice = false;
    for version in versions {
        let name = text(version, "name");
        is_twice |= seen.contains(&name);
        seen.push(name);
    }
    if is_twice {
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid_text(field, shown, detail));
    }
    let stored = versions.iter().filter(|version| flag(version, "storage"));
    if stored.count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid_text(field, shown, detail));
    }
}

/// Upstream: `validateCustomResourceConversion`
fn conversion(conversion: &Value, errors: &mut Vec<FieldError>) {
    let strategy = text(conversion, "strategy");
    let webhook = conversion
        .get("webhook")
        .filter(|webhook| webhook.is_object());
    let client = webhook.and_then(|webhook| webhook.get("clientConfig"));
    let client = client.filter(|client| client.is_object());
    let reviews = webhook.map(|webhook| texts(webhook, "conversionReviewVersions"));
    let reviews = reviews.filter(|reviews| !reviews.is_empty());
    let (at_client, at_reviews) = (
        "spec.conversion.webhookClientConfig",
        "spec.conversion.conversionReviewVersions",
    );
    match strategy {
        "" => errors.push(FieldError::required("spec.conversion.strategy", "")),
        "None" => {
            let detail = "should not be set when strategy is not set to Webhook";
            if client.is_some() {
                errors.push(FieldError::forbidden(at_client, detail));
            }
            if reviews.is_some() {
                errors.push(FieldError::forbidden(at_reviews, detail));
            }
        }
        "Webhook" => {
            match client {
                None => {
                    let detail = "required when strategy is set to Webhook";
                    errors.push(FieldError::required(at_client, detail));
                }
                Some(client) => webhook_client(client, at_client, errors),
            }
            match reviews {
                None => errors.push(FieldError::required(at_reviews, "")),
                Some(found) if !found.iter().any(|v| v == "v1" || v == "v1beta1") => {
                    let detail = "must include at least one of v1, v1beta1";
                    errors.push(FieldError::invalid(at_reviews, &json!(found), detail));
                }
                Some(_) => {}
            }
        }
        other => errors.push(FieldError::not_supported(
            "spec.conversion.strategy",
            &json!(other),
            &["None", "Webhook"],
        )),
    }
}

fn webhook_client(client: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let url = client.get("url").and_then(Value::as_str);
    let has_service = client.get("service").is_some_and(Value::is_object);
    match (url, has_service) {
        (Some(_), true) | (None, false) => {
            let detail = "exactly one of url or service is required";
            errors.push(FieldError::required(at, detail));
        }
        (Some(url), false) => {
            let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
            if scheme != "https" {
                let detail = "'https' is the only allowed URL scheme; desired format: \
                              https://host[/path]";
                let field = format!("{at}.url");
                errors.push(FieldError::invalid(field, &json!(scheme), detail));
            }
        }
        (None, true) => {}
    }
}

/// Checks that no stored version is missing.
fn stored_versions(definition: Definition<'_>, versions: &[&Value], errors: &mut Vec<FieldError>) {
    let field = "status.storedVersions";
    let stored = definition
        .0
        .get("status")
        .map_or_else(Vec::new, |status| texts(status, "storedVersions"));
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(field, &Value::Null, detail));
    }
    for (index, version) in stored.iter().enumerate() {
        if !versions.iter().any(|known| text(known, "name") == version) {
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and \
                 must remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {version} and removes {version} from status.storedVersions"
            );
            let field = format!("{field}[{index}]");
            errors.push(FieldError::invalid(field, &json!(version), &detail));
        }
    }
}

/// Upstream: `validateAPIApproval`
fn approval(definition: Definition<'_>, errors: &mut Vec<FieldError>) {
    if !is_protected(definition.group()) {
        return;
    }
    let start = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
    match approval_annotation(definition.0) {
        None | Some("") => {
            let detail = format!("{start}, {APPROVAL_GUIDE}");
            errors.push(FieldError::required(APPROVAL_FIELD, &detail));
        }
        Some(found) if found.starts_with("unapproved") || found.contains("://") => {}
        Some(found) => {
            let detail = format!(
                "{start} with either a URL or a reason starting with \"unapproved\", \
                 {APPROVAL_GUIDE}"
            );
            errors.push(FieldError::invalid(APPROVAL_FIELD, &json!(found), &detail));
        }
    }
}

/// Checks the members that an established definition can't change.
fn immutable(new: Definition<'_>, old: Definition<'_>, errors: &mut Vec<FieldError>) {
    if !old.is_established() {
        return;
    }
    let fields = [
        "spec.group",
        "spec.names.plural",
        "spec.scope",
        "spec.names.kind",
    ];
    for field in fields {
        let pointer = format!("/{}", field.replace('.', "/"));
        let (before, after) = (old.0.pointer(&pointer), new.0.pointer(&pointer));
        if before != after {
            let after = after.unwrap_or(&Value::Null);
            errors.push(FieldError::invalid(field, after, "field is immutable"));
        }
    }
}
