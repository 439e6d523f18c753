//! Rules on the `metadata` of all kinds.

use std::collections::BTreeSet;

use serde_json::json;

use super::Subject;
use super::engine::{Errors, Place};
use crate::go::names;
use crate::kinds::{Kind, NameRule, Rounds, Subresource, Target};
use crate::managed_fields::check_field_manager;
use crate::members::text;
use crate::object::{Draft, MetadataRef};

/// Maximum total size of annotation keys and values, in bytes.
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// The allowed finalizers without a domain.
const BARE_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

fn rounds(subject: Subject<'_>) -> Rounds {
    let kind = subject.kind;
    let is_status = subject.target == Target::Part(Subresource::Status);
    kind.status_rounds
        .filter(|_| is_status)
        .unwrap_or(kind.rounds)
}

pub(super) fn validate(subject: Subject<'_>, place: &Place<'_>) -> Errors {
    let kind = subject.kind;
    let metadata = &place.member("metadata");
    let mut errors = Errors::new();
    let rounds = rounds(subject);
    if subject.old.is_none() {
        if rounds != Rounds::Nothing {
            full_with_known_finalizers(kind, metadata, &mut errors);
        }
        return errors;
    }
    // The rounds for all kinds.
    full(kind, metadata, NameRule::PathSegment, &mut errors);
    metadata.check("ObjectMeta/update", &mut errors);
    let update = |errors: &mut _| {
        metadata.check("ObjectMeta/update", errors);
        known_finalizers(kind, metadata, errors);
    };
    let full = |errors: &mut _| full_with_known_finalizers(kind, metadata, errors);
    match rounds {
        Rounds::Update => update(&mut errors),
        Rounds::UpdateAndFull => {
            update(&mut errors);
            full(&mut errors);
        }
        Rounds::FullAndUpdate => {
            full(&mut errors);
            update(&mut errors);
        }
        Rounds::Full => full(&mut errors),
        Rounds::Nothing => {}
    }
    errors
}

/// Checks the metadata of a new object that is valid otherwise.
///
/// Upstream: `BeforeCreate`.
pub(super) fn validate_last(subject: Subject<'_>, place: &Place<'_>, errors: &mut Errors) {
    // The other rules for names imply that of paths.
    let is_checked = rounds(subject) != Rounds::Nothing;
    let implies = is_checked && subject.kind.name_rule != NameRule::LongName;
    if subject.old.is_none() && errors.is_empty() && !implies {
        let metadata = &place.member("metadata");
        full(subject.kind, metadata, NameRule::PathSegment, errors);
    }
}

/// Upstream: `ValidateObjectMeta` of the core group, or of apimachinery for other kinds.
fn full_with_known_finalizers(kind: &Kind, metadata: &Place<'_>, errors: &mut Errors) {
    full(kind, metadata, kind.name_rule, errors);
    known_finalizers(kind, metadata, errors);
}

/// Groups in which finalizers need no domain, besides those of custom resources.
const GROUPS_WITH_ANY_FINALIZER: [&str; 5] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
];

fn known_finalizers(kind: &Kind, metadata: &Place<'_>, errors: &mut Errors) {
    if kind.custom.is_none() && !GROUPS_WITH_ANY_FINALIZER.contains(&&*kind.group) {
        metadata.check("ObjectMeta/known", errors);
    }
}

fn finalizers_of(draft: &Draft) -> BTreeSet<&str> {
    draft.metadata().finalizers().into_iter().collect()
}

/// Returns a warning for each new finalizer of a custom resource without a domain or a path.
pub(super) fn finalizer_warnings(subject: Subject<'_>) -> Vec<String> {
    let old = subject.old.map(finalizers_of).unwrap_or_default();
    let new = finalizers_of(subject.new);
    let unclear = new.difference(&old).filter(|finalizer| {
        !finalizer.contains('/')
            && !["foregroundDeletion", "kubernetes", "orphan"].contains(finalizer)
    });
    unclear
        .map(|finalizer| {
            let path = if finalizer.contains('.') {
                " including a path (/)"
            } else {
                ""
            };
            format!(
                "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name{path} \
                 to avoid accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}

/// Upstream: `ValidateObjectMetaAccessor`.
fn full(kind: &Kind, metadata: &Place<'_>, rule: NameRule, errors: &mut Errors) {
    let prefix = metadata.member("generateName");
    if !prefix.is_empty() {
        // A prefix may end in a dash, a name may not.
        let masked = match prefix.text().strip_suffix('-') {
            Some(start) if rule != NameRule::PathSegment => format!("{start}a"),
            _ => prefix.text().to_owned(),
        };
        if rule != NameRule::LongName {
            prefix.invalid_for(named_by(rule, &masked), errors);
        }
    }
    let name = metadata.member("name");
    if name.is_empty() {
        errors.push(name.required("name or generateName is required"));
    } else {
        name.invalid_for(named_by(rule, name.text()), errors);
    }
    let namespace = metadata.member("namespace");
    if !kind.namespaced && !namespace.is_empty() {
        errors.push(namespace.forbidden("not allowed on this type"));
    }
    metadata.check("ObjectMeta", errors);
}

fn named_by(rule: NameRule, name: &str) -> Vec<&'static str> {
    match rule {
        NameRule::Label => names::dns_label(name),
        NameRule::LetterLabel => names::letter_label(name),
        NameRule::PathSegment => names::path_segment(name),
        NameRule::Subdomain | NameRule::LongName => names::dns_subdomain(name),
    }
}

/// Validates the name of a field manager. Ownership tracking handles all other errors of entries.
///
/// Upstream: `ValidateManagedFields`.
pub(super) fn field_manager(manager: &Place<'_>, errors: &mut Errors) {
    errors.extend(check_field_manager(|| manager.path(), manager.text()));
}

/// Upstream: `ValidateLabels`.
pub(super) fn labels(labels: &Place<'_>, _: &[&str], _: &str, errors: &mut Errors) {
    for (key, value) in labels.value.as_object().into_iter().flatten() {
        let invalid = |value: &_, why: &str| labels.invalid_as(value, why);
        let name = names::qualified_name(key);
        errors.extend(name.iter().map(|why| invalid(&key.as_str().into(), why)));
        let text = names::label_value(value.as_str().unwrap_or_default());
        errors.extend(text.iter().map(|why| invalid(value, why)));
    }
}

/// Upstream: `ValidateAnnotations`.
pub(super) fn annotations(found: &Place<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in found.value.as_object().into_iter().flatten() {
        for message in names::qualified_name(&key.to_lowercase()) {
            errors.push(found.invalid_as(&json!(key), &message));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_SIZE_MAX {
        errors.push(found.too_long(ANNOTATIONS_SIZE_MAX));
    }
}

/// Rejects a version that is empty without its group.
pub(super) fn owner_version(api_version: &Place<'_>, errors: &mut Errors) {
    // Upstream ignores a version with more than one slash.
    let version = match api_version.text().split_once('/') {
        Some((_, version)) if version.contains('/') => "",
        Some((_, version)) => version,
        None => api_version.text(),
    };
    if version.is_empty() {
        api_version.invalid_for(["version must not be empty"], errors);
    }
}

/// Rejects a second controller.
pub(super) fn one_controller(references: &Place<'_>, errors: &mut Errors) {
    let references_of = references.value.as_array().into_iter().flatten();
    let controllers: Vec<String> = references_of
        .filter(|reference| reference["controller"] == true)
        .map(|reference| format!("{}/{}", text(reference, "kind"), text(reference, "name")))
        .collect();
    if let [first, second, ..] = controllers.as_slice() {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {first} and {second}"
        );
        errors.push(references.invalid(&detail));
    }
}

/// Rejects contradicting finalizers of the garbage collector.
pub(super) fn one_deletion_policy(finalizers: &Place<'_>, errors: &mut Errors) {
    let has = |name: &str| {
        finalizers
            .values()
            .any(|finalizer| finalizer.text() == name)
    };
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(finalizers.invalid(detail));
    }
}

/// Rejects an unknown finalizer without a domain.
pub(super) fn known_finalizer(finalizer: &Place<'_>, errors: &mut Errors) {
    let name = finalizer.text();
    if !name.contains('/') && !BARE_FINALIZERS.contains(&name) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(finalizer.invalid(detail));
    }
}

/// Rejects new finalizers of an object in deletion.
pub(super) fn added_finalizers(metadata: &Place<'_>, errors: &mut Errors) {
    let (new, old) = (MetadataRef(Some(metadata.value)), MetadataRef(metadata.old));
    if !old.is_deleting() {
        return;
    }
    let before: BTreeSet<&str> = old.finalizers().into_iter().collect();
    let added: BTreeSet<&str> = new.finalizers().into_iter().collect();
    let added: Vec<String> = added
        .difference(&before)
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    if !added.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{}}}",
            added.join(", ")
        );
        errors.push(metadata.member("finalizers").forbidden(&detail));
    }
}
