//! Rules of environment variables, and of references to the fields of a pod.

use serde_json::json;

use crate::go::names;
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place};
use kube_apimachinery::quantity::Quantity;

/// The fields that variables can reference.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The fields that files can reference.
const VOLUME_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Existing fields besides those that variables can reference.
const OTHER_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
];

/// The divisors of all resources except cores.
const DIVISORS: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

pub(in crate::validation) fn env_field(reference: &Place<'_>, errors: &mut Errors) {
    field(reference, &ENV_FIELDS, errors);
}

pub(in crate::validation) fn volume_field(reference: &Place<'_>, errors: &mut Errors) {
    field(reference, &VOLUME_FIELDS, errors);
}

/// Upstream: `validateObjectFieldSelector`.
fn field(reference: &Place<'_>, known: &[&str], errors: &mut Errors) {
    let version = reference.member("apiVersion");
    let field = reference.member("fieldPath");
    if let Some(missing) = [&version, &field]
        .into_iter()
        .find(|place| place.is_empty())
    {
        errors.push(missing.required(""));
        return;
    }
    let inner = match converted(version.text(), field.text()) {
        Ok(inner) => inner,
        Err(why) => {
            field.invalid_for([format!("error converting fieldPath: {why}")], errors);
            return;
        }
    };
    if let Some((of, key)) = subscript(inner) {
        let key = match of {
            "metadata.annotations" => key.to_lowercase(),
            _ => key.to_owned(),
        };
        let invalid = |why: &String| reference.invalid_as(&json!(key), why);
        errors.extend(names::qualified_name(&key).iter().map(invalid));
    } else if !known.contains(&inner) {
        errors.push(FieldError::not_supported(
            field.path(),
            &json!(inner),
            known,
        ));
    }
}

/// Upstream: `SplitMaybeSubscriptedPath`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (of, key) = path.strip_suffix("']")?.split_once("['")?;
    (!of.is_empty()).then_some((of, key))
}

/// Upstream: `ConvertDownwardAPIFieldLabel`.
fn converted<'a>(version: &str, field: &'a str) -> Result<&'a str, String> {
    if version != "v1" {
        return Err(format!("unsupported pod version: {version}"));
    }
    match (subscript(field), field) {
        (Some(("metadata.annotations" | "metadata.labels", _)), _) => Ok(field),
        (Some(_), _) => Err(format!("field label does not support subscript: {field}")),
        (None, "spec.host") => Ok("spec.nodeName"),
        _ if ENV_FIELDS.contains(&field) || OTHER_FIELDS.contains(&field) => Ok(field),
        _ => Err(format!("field label not supported: {field}")),
    }
}

/// Returns true for huge pages of a size.
fn is_huge_pages(resource: &str) -> bool {
    ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|start| resource.starts_with(start))
}

/// Upstream: `validateContainerResourceDivisor`.
pub(in crate::validation) fn resource_divisor(reference: &Place<'_>, errors: &mut Errors) {
    let resource = reference.text_of("resource");
    let divisor = reference.member("divisor");
    let parsed: Quantity = divisor.text().parse().unwrap_or_default();
    let (known, noun) = match resource.split_once('.').map_or("", |(_, name)| name) {
        _ if parsed.is_zero() => return,
        "cpu" => (&["1m", "1"][..], "cpu"),
        "memory" => (&DIVISORS[..], "memory"),
        "ephemeral-storage" => (&DIVISORS[..], "local ephemeral storage"),
        _ if is_huge_pages(resource) => (&DIVISORS[..], "hugepages"),
        _ => return,
    };
    if !known.contains(&&*parsed.to_string()) {
        let list = match noun {
            "cpu" => "1m and 1".to_owned(),
            _ => known.join(", "),
        };
        let detail = format!("only divisor's values {list} are supported with the {noun} resource");
        errors.push(divisor.invalid_as(&json!(resource), &detail));
    }
}
