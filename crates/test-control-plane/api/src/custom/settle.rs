//! The status of a definition: accepted names, conditions, deletion.
//!
//! Upstream sets them in several controllers. Here they follow each write at once.

use serde_json::{Value, json};

use super::definition::Definition;
use super::names::accept;
use super::trust::fault_of_bundle;
use crate::members::{object_mut, set_or_remove, text};

/// The finalizer that holds a definition until its resources are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The annotation that approves a definition in a protected group.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// The definition after its next status change; `None` if none is due.
pub type Settled = Option<Value>;

/// A condition to set.
struct Condition<'a> {
    of: &'a str,
    is: bool,
    reason: &'a str,
    message: &'a str,
}

/// Returns the definition with the next change of its status, or `None` if it needs none.
///
/// `all` are all definitions, `now` is the time of the change.
pub fn settle(definition: &Value, all: &[&Value], now: &str) -> Settled {
    let read = Definition(definition);
    if let Some((is, reason, message)) = approval(read) {
        let of = "KubernetesAPIApprovalPolicyConformant";
        let message = &message;
        let condition = Condition {
            of,
            is,
            reason,
            message,
        };
        if !has_condition(read, &condition) {
            let mut next = definition.clone();
            set_condition(&mut next, &condition, now);
            return Some(next);
        }
    }
    if let Some(next) = with_names(read, all, now) {
        return Some(next);
    }
    let waiting = ["Installing", "InvalidCABundle"];
    if read
        .condition("Established")
        .is_some_and(|found| waiting.contains(&text(found, "reason")))
        && read.is("NamesAccepted")
    {
        let established = established(read);
        if has_condition(read, &established) {
            return None;
        }
        let mut next = definition.clone();
        set_condition(&mut next, &established, now);
        return Some(next);
    }
    None
}

/// Returns the condition of a definition with accepted names.
///
/// Upstream: `EstablishingController.sync`
fn established(definition: Definition<'_>) -> Condition<'static> {
    if fault_of_bundle(definition.bundle()).is_some() {
        return Condition {
            of: "Established",
            is: false,
            reason: "InvalidCABundle",
            message: "The conversion webhook CABundle is invalid",
        };
    }
    Condition {
        of: "Established",
        is: true,
        reason: "InitialNamesAccepted",
        message: "the initial names have been accepted",
    }
}

/// Returns true if only approved definitions may use the group.
///
/// Upstream: `IsProtectedCommunityGroup`
pub(crate) fn is_protected(group: &str) -> bool {
    let within = |parent: &str| group == parent || group.ends_with(&format!(".{parent}"));
    within("k8s.io") || within("kubernetes.io")
}

/// Returns the annotation that approves the definition.
pub(crate) fn approval_annotation(definition: &Value) -> Option<&str> {
    definition
        .get("metadata")?
        .get("annotations")?
        .get(APPROVAL)?
        .as_str()
}

/// Returns status, reason and message of the approval.
///
/// Upstream: `GetAPIApprovalState`
fn approval(definition: Definition<'_>) -> Option<(bool, &'static str, String)> {
    if !is_protected(definition.group()) {
        return None;
    }
    let annotation = approval_annotation(definition.0)?;
    Some(if annotation.starts_with("unapproved") {
        let message = format!("not approved: {annotation:?}");
        (false, "UnapprovedAnnotation", message)
    } else {
        let message = format!("approved in {annotation}");
        (true, "ApprovedAnnotation", message)
    })
}

/// Returns the definition with its accepted names, or `None` if they and their condition stay.
///
/// Upstream: `NamingConditionController.sync`
fn with_names(read: Definition<'_>, all: &[&Value], now: &str) -> Settled {
    let before = read.0.pointer("/status/acceptedNames");
    // As in upstream, a conflict about former names stays in the condition.
    if before.is_some() && read.0.pointer("/spec/names") == before {
        return None;
    }
    let accepted = accept(read, all);
    let names = match &accepted.conflict {
        None => Condition {
            of: "NamesAccepted",
            is: true,
            reason: "NoConflicts",
            message: "no conflicts found",
        },
        Some((reason, message)) => Condition {
            of: "NamesAccepted",
            is: false,
            reason,
            message,
        },
    };
    if before == Some(&accepted.names) && has_condition(read, &names) {
        return None;
    }
    let mut next = read.0.clone();
    set_condition(&mut next, &names, now);
    let established = |reason, message| Condition {
        of: "Established",
        is: false,
        reason,
        message,
    };
    if names.is && !read.is_established() {
        let installing = established("Installing", "the initial names have been accepted");
        set_condition(&mut next, &installing, now);
    } else if read.condition("Established").is_none() {
        let refused = established("NotAccepted", "not all names are accepted");
        set_condition(&mut next, &refused, now);
    }
    object_mut(&mut next, "status").insert("acceptedNames".to_owned(), accepted.names);
    Some(next)
}

/// Reports whether a definition has a condition, apart from its time.
fn has_condition(definition: Definition<'_>, condition: &Condition<'_>) -> bool {
    let status = if condition.is { "True" } else { "False" };
    definition.condition(condition.of).is_some_and(|found| {
        text(found, "status") == status
            && text(found, "reason") == condition.reason
            && text(found, "message") == condition.message
    })
}

/// Marks a definition whose deletion begins: it waits for its resources.
pub fn begin_deletion(definition: &mut Value, now: &str) {
    let metadata = object_mut(definition, "metadata");
    let mut finalizers = metadata
        .get("finalizers")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if !finalizers.iter().any(|name| name == CLEANUP_FINALIZER) {
        finalizers.push(json!(CLEANUP_FINALIZER));
        metadata.insert("finalizers".to_owned(), Value::Array(finalizers));
    }
    metadata.insert("deletionTimestamp".to_owned(), json!(now));
    let terminating = Condition {
        of: "Terminating",
        is: true,
        reason: "InstanceDeletionPending",
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                  begin soon",
    };
    set_condition(definition, &terminating, now);
}

/// Returns the next version of a definition in deletion: resources are being deleted, or, if none
/// `is_left`, the finalizer is gone. `None` if it has to wait. A definition that is not established has
/// no resources.
///
/// Upstream: `CRDFinalizer.sync`
pub fn complete_deletion(definition: &Value, is_left: impl FnOnce() -> bool, now: &str) -> Settled {
    let read = Definition(definition);
    let finalizers = definition
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)?;
    if !read.is_deleting() || !finalizers.iter().any(|name| name == CLEANUP_FINALIZER) {
        return None;
    }
    let mut next = definition.clone();
    let reason = read
        .condition("Terminating")
        .map(|found| text(found, "reason"));
    if reason != Some("InstanceDeletionInProgress") {
        let deleting = Condition {
            of: "Terminating",
            is: true,
            reason: "InstanceDeletionInProgress",
            message: "CustomResource deletion is in progress",
        };
        set_condition(&mut next, &deleting, now);
        return Some(next);
    }
    let (reason, message) = if read.is_established() {
        if is_left() {
            return None;
        }
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("NeverEstablished", "resource was never established")
    };
    let done = Condition {
        of: "Terminating",
        is: false,
        reason,
        message,
    };
    set_condition(&mut next, &done, now);
    let rest: Vec<Value> = finalizers
        .iter()
        .filter(|name| *name != CLEANUP_FINALIZER)
        .cloned()
        .collect();
    let rest = Some(json!(rest)).filter(|_| !rest.is_empty());
    set_or_remove(object_mut(&mut next, "metadata"), "finalizers", rest);
    Some(next)
}

/// Sets a condition. Its time changes only with its status.
///
/// Upstream: `SetCRDCondition`
fn set_condition(definition: &mut Value, condition: &Condition<'_>, now: &str) {
    let status = object_mut(definition, "status");
    let list = status.entry("conditions").or_insert(Value::Null);
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else {
        return;
    };
    let is = if condition.is { "True" } else { "False" };
    let mut set = json!({
        "type": condition.of,
        "status": is,
        "lastTransitionTime": now,
        "reason": condition.reason,
        "message": condition.message,
    });
    match list
        .iter_mut()
        .find(|found| text(found, "type") == condition.of)
    {
        Some(found) => {
            if text(found, "status") == is {
                set["lastTransitionTime"] = found["lastTransitionTime"].clone();
            }
            *found = set;
        }
        None => list.push(set),
    }
}
