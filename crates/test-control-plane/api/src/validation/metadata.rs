//! Rules on the `metadata` of all kinds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::label_selector::labels;
use super::place::{Errors, Place};
use super::{Subject, names};
use crate::kinds::{Kind, NameRule};
use crate::managed_fields::check_field_manager;
use crate::members::text;
use crate::object::MetadataRef;
use crate::status::FieldError;

/// Maximum total size of annotation keys and values, in bytes.
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// Maximum length of a subresource's name in a manager's entry, in bytes.
const SUBRESOURCE_NAME_MAX: usize = 256;

/// The allowed finalizers without a domain.
const BARE_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

/// The rounds of metadata checks that a kind adds on an update, besides the rounds for all kinds.
/// Each round reports its findings, so clients see duplicates as often as with the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounds {
    /// Only the update rules.
    Update,
    /// The update rules and all create rules.
    UpdateAndFull,
    /// Only the create rules.
    Full,
    /// None; the name must only be a path segment.
    Nothing,
}

fn rounds(kind: &Kind) -> Rounds {
    match kind.storage {
        "deployments" | "endpoints" | "leases" | "resourcequotas" | "statefulsets" => {
            Rounds::Update
        }
        "limitranges" => Rounds::Full,
        "events" | "poddisruptionbudgets" => Rounds::Nothing,
        _ => Rounds::UpdateAndFull,
    }
}

pub(super) fn validate(subject: Subject<'_>) -> Errors {
    let kind = subject.kind;
    let metadata = subject.new.metadata();
    let mut errors = Vec::new();
    let rounds = rounds(kind);
    let Some(old) = subject.old else {
        match rounds {
            Rounds::Nothing => full(kind, metadata, NameRule::PathSegment, &mut errors),
            _ => full_with_known_finalizers(kind, metadata, &mut errors),
        }
        return errors;
    };
    // The rounds for all kinds.
    full(kind, metadata, NameRule::PathSegment, &mut errors);
    update(metadata, old.metadata(), &mut errors);
    if matches!(rounds, Rounds::Update | Rounds::UpdateAndFull) {
        update(metadata, old.metadata(), &mut errors);
        known_finalizers(metadata, &mut errors);
    }
    if matches!(rounds, Rounds::Full | Rounds::UpdateAndFull) {
        full_with_known_finalizers(kind, metadata, &mut errors);
    }
    errors
}

/// Upstream: `ValidateObjectMeta` of the core group.
fn full_with_known_finalizers(kind: &Kind, metadata: MetadataRef<'_>, errors: &mut Errors) {
    full(kind, metadata, kind.name_rule, errors);
    known_finalizers(metadata, errors);
}

/// Upstream: `ValidateObjectMetaAccessor`.
fn full(kind: &Kind, metadata: MetadataRef<'_>, rule: NameRule, errors: &mut Errors) {
    let prefix = metadata.text("generateName");
    if !prefix.is_empty() {
        // A prefix may end in a dash, a name may not.
        let masked = match prefix.strip_suffix('-') {
            Some(start) if rule != NameRule::PathSegment => format!("{start}a"),
            _ => prefix.to_owned(),
        };
        for message in named_by(rule, &masked) {
            let field = "metadata.generateName";
            errors.push(FieldError::invalid(field, &json!(prefix), message));
        }
    }
    let name = metadata.name();
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        for message in named_by(rule, name) {
            errors.push(FieldError::invalid("metadata.name", &json!(name), message));
        }
    }
    if !kind.namespaced && !metadata.namespace().is_empty() {
        errors.push(FieldError::forbidden(
            "metadata.namespace",
            "not allowed on this type",
        ));
    }
    labels_and_annotations(metadata, errors);
    owner_references(metadata, errors);
    finalizers(metadata, errors);
    managers(metadata, errors);
}

/// Validates the names in manager entries. Ownership tracking handles all other errors of entries.
///
/// Upstream: `ValidateManagedFields`.
fn managers(metadata: MetadataRef<'_>, errors: &mut Errors) {
    for (i, entry) in metadata.list("managedFields").enumerate() {
        let text = |member: &str| text(entry, member);
        let field = format!("metadata.managedFields[{i}]");
        errors.extend(check_field_manager(
            &format!("{field}.manager"),
            text("manager"),
        ));
        if text("subresource").len() > SUBRESOURCE_NAME_MAX {
            let detail = format!("may not be more than {SUBRESOURCE_NAME_MAX} bytes");
            errors.push(FieldError::too_long(
                format!("{field}.subresource"),
                &detail,
            ));
        }
    }
}

fn named_by(rule: NameRule, name: &str) -> Vec<&'static str> {
    match rule {
        NameRule::Label => names::dns_label(name),
        NameRule::LetterLabel => names::letter_label(name),
        NameRule::PathSegment => names::path_segment(name),
        NameRule::Subdomain => names::dns_subdomain(name),
    }
}

fn labels_and_annotations(metadata: MetadataRef<'_>, errors: &mut Errors) {
    let metadata = Place::new(metadata.0.unwrap_or(&Value::Null), "metadata");
    labels(&metadata.member("labels"), errors);
    annotations(&metadata.member("annotations"), errors);
}

/// Upstream: `ValidateAnnotations`.
pub(super) fn annotations(found: &Place<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in found.value.as_object().into_iter().flatten() {
        for message in names::qualified_name(&key.to_lowercase()) {
            errors.push(FieldError::invalid(found.path(), &json!(key), &message));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_SIZE_MAX {
        let detail = format!("may not be more than {ANNOTATIONS_SIZE_MAX} bytes");
        errors.push(FieldError::too_long(found.path(), &detail));
    }
}

fn owner_references(metadata: MetadataRef<'_>, errors: &mut Errors) {
    let mut controllers = Vec::new();
    for reference in metadata.owner_references() {
        let text = |member: &str| text(reference, member);
        let api_version = text("apiVersion");
        // The reference ignores a version with more than one slash.
        let version = match api_version.split_once('/') {
            Some((_, version)) if version.contains('/') => "",
            Some((_, version)) => version,
            None => api_version,
        };
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

/// Formats the references for messages, with members in the order of the type.
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

fn finalizers(metadata: MetadataRef<'_>, errors: &mut Errors) {
    let all = metadata.finalizers();
    for finalizer in &all {
        for message in names::qualified_name(finalizer) {
            errors.push(FieldError::invalid(
                "metadata.finalizers",
                &json!(finalizer),
                &message,
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

/// Rejects unknown finalizers without a domain.
fn known_finalizers(metadata: MetadataRef<'_>, errors: &mut Errors) {
    for (i, finalizer) in metadata.finalizers().into_iter().enumerate() {
        if !finalizer.contains('/') && !BARE_FINALIZERS.contains(&finalizer) {
            errors.push(FieldError::invalid(
                format!("metadata.finalizers[{i}]"),
                &json!(finalizer),
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
}

/// Rejects changes to deletion members. Only a deletion may set or change them.
fn deletion(new: MetadataRef<'_>, old: MetadataRef<'_>, errors: &mut Errors) {
    let detail = "field is immutable; may only be changed via deletion";
    let member = |metadata: MetadataRef<'_>, name: &str| {
        let value = metadata.0.and_then(|m| m.get(name)).cloned();
        value.filter(|value| !value.is_null())
    };
    let changed = |name: &str| member(new, name).filter(|_| member(new, name) != member(old, name));
    if let Some(period) = changed("deletionGracePeriodSeconds") {
        let field = "metadata.deletionGracePeriodSeconds";
        errors.push(FieldError::invalid(field, &period, detail));
    }
    if changed("deletionTimestamp").is_some() {
        let field = "metadata.deletionTimestamp";
        let shown = printed_time(new.text("deletionTimestamp"));
        errors.push(FieldError::invalid_text(field, &shown, detail));
    }
}

/// Formats a time as Go does in UTC.
fn printed_time(text: &str) -> String {
    let time: Result<jiff::Timestamp, _> = text.parse();
    time.map_or_else(
        |_| text.to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string(),
    )
}

/// Upstream: `ValidateObjectMetaAccessorUpdate`.
fn update(new: MetadataRef<'_>, old: MetadataRef<'_>, errors: &mut Errors) {
    deletion(new, old, errors);
    if old.is_deleting() {
        let before: BTreeSet<&str> = old.finalizers().into_iter().collect();
        let added: BTreeSet<&str> = new.finalizers().into_iter().collect();
        let added: Vec<String> = added
            .difference(&before)
            .map(|finalizer| format!("{finalizer:?}"))
            .collect();
        if !added.is_empty() {
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                &format!(
                    "no new finalizers can be added if the object is being deleted, found new \
                     finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
    for member in ["name", "namespace", "uid"] {
        if new.text(member) != old.text(member) {
            let value = json!(new.text(member));
            let field = format!("metadata.{member}");
            errors.push(FieldError::invalid(field, &value, "field is immutable"));
        }
    }
    labels_and_annotations(new, errors);
    owner_references(new, errors);
}
