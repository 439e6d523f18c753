//! Rules on `metadata` that hold for every kind.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{FieldError, Subject, names};
use crate::kinds::NameRule;
use crate::object::MetadataRef;

/// The largest sum of the sizes of annotation keys and values, in bytes.
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// Finalizers without a domain that are allowed.
const BARE_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

pub(super) fn validate(subject: Subject<'_>) -> Vec<FieldError> {
    let metadata = subject.new.metadata();
    let mut errors = Vec::new();
    if subject.old.is_none() {
        name(subject, metadata, &mut errors);
    }
    labels(metadata, &mut errors);
    annotations(metadata, &mut errors);
    owner_references(metadata, &mut errors);
    finalizers(metadata, &mut errors);
    if let Some(old) = subject.old {
        update(metadata, old.metadata(), &mut errors);
    }
    errors
}

fn name(subject: Subject<'_>, metadata: MetadataRef<'_>, errors: &mut Vec<FieldError>) {
    let name = metadata.name();
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
        return;
    }
    let found = match subject.kind.name_rule {
        NameRule::Label => names::dns_label(name),
        NameRule::LetterLabel => names::letter_label(name),
        NameRule::PathSegment => names::path_segment(name),
        NameRule::Subdomain => names::dns_subdomain(name),
    };
    for message in found {
        errors.push(FieldError::invalid("metadata.name", &json!(name), message));
    }
}

fn entries<'a>(
    metadata: MetadataRef<'a>,
    member: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    metadata
        .0
        .and_then(|m| m.get(member))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn labels(metadata: MetadataRef<'_>, errors: &mut Vec<FieldError>) {
    for (key, value) in entries(metadata, "labels") {
        for message in names::qualified_name(key) {
            errors.push(FieldError::invalid(
                "metadata.labels",
                &json!(key),
                &message,
            ));
        }
        for message in names::label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid("metadata.labels", value, message));
        }
    }
}

fn annotations(metadata: MetadataRef<'_>, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in entries(metadata, "annotations") {
        for message in names::qualified_name(&key.to_lowercase()) {
            errors.push(FieldError::invalid(
                "metadata.annotations",
                &json!(key),
                &message,
            ));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_SIZE_MAX {
        errors.push(FieldError::too_long(
            "metadata.annotations",
            &format!("may not be more than {ANNOTATIONS_SIZE_MAX} bytes"),
        ));
    }
}

fn owner_references(metadata: MetadataRef<'_>, errors: &mut Vec<FieldError>) {
    let mut controllers = Vec::new();
    for reference in metadata.owner_references() {
        let text = |member: &str| reference.get(member).and_then(Value::as_str).unwrap_or("");
        let api_version = text("apiVersion");
        let version = api_version.rsplit('/').next().unwrap_or_default();
        for (member, value, message) in [
            ("apiVersion", version, "version must not be empty"),
            ("kind", text("kind"), "must not be empty"),
            ("name", text("name"), "must not be empty"),
            ("uid", text("uid"), "must not be empty"),
        ] {
            if value.is_empty() {
                let field = format!("metadata.ownerReferences.{member}");
                let shown = text(member);
                errors.push(FieldError::invalid(field, &json!(shown), message));
            }
        }
        if reference.get("controller") == Some(&Value::Bool(true)) {
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {first} and {second}"
        );
        errors.push(FieldError::invalid_text(
            "metadata.ownerReferences",
            &printed_references(metadata),
            &detail,
        ));
    }
}

/// The references with their members in the order of the type, as the messages show them.
fn printed_references(metadata: MetadataRef<'_>) -> String {
    let members = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let printed: Vec<String> = metadata
        .owner_references()
        .map(|reference| {
            let members: Vec<String> = members
                .iter()
                .filter_map(|m| Some(format!("\"{m}\":{}", reference.get(m)?)))
                .collect();
            format!("{{{}}}", members.join(","))
        })
        .collect();
    format!("[{}]", printed.join(","))
}

fn finalizers(metadata: MetadataRef<'_>, errors: &mut Vec<FieldError>) {
    let all = metadata.finalizers();
    for finalizer in &all {
        for message in names::qualified_name(finalizer) {
            errors.push(FieldError::invalid(
                "metadata.finalizers",
                &json!(finalizer),
                &message,
            ));
        }
        if !finalizer.contains('/') && !BARE_FINALIZERS.contains(finalizer) {
            errors.push(FieldError::invalid(
                "metadata.finalizers",
                &json!(finalizer),
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        errors.push(FieldError::invalid(
            "metadata.finalizers",
            &json!(all),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
}

fn update(new: MetadataRef<'_>, old: MetadataRef<'_>, errors: &mut Vec<FieldError>) {
    if old.is_deleting() {
        let before: BTreeSet<&str> = old.finalizers().into_iter().collect();
        let added: Vec<String> = new
            .finalizers()
            .into_iter()
            .filter(|f| !before.contains(f))
            .map(|f| format!("{f:?}"))
            .collect();
        if !added.is_empty() {
            let error = FieldError::forbidden(
                "metadata.finalizers",
                &format!(
                    "no new finalizers can be added if the object is being deleted, found new \
                     finalizers []string{{{}}}",
                    added.join(", ")
                ),
            );
            // The reference checks this twice and reports it twice.
            errors.push(error.clone());
            errors.push(error);
        }
    }
    if new.uid() != old.uid() {
        let error = FieldError::invalid("metadata.uid", &json!(new.uid()), "field is immutable");
        errors.push(error.clone());
        errors.push(error);
    }
}
