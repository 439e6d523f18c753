//! The status of a definition: accepted names, conditions, deletion.
//!
//! Upstream sets them in several controllers. Here they follow each write at once.

use serde_json::{Value, json};

use super::definition::Definition;
use super::names::accept;
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
    if let Some(condition) = approval(read) {
        let same = |found: &Value| {
            let status = if condition.is { "True" } else { "False" };
            text(found, "status") == status && text(found, "reason") == condition.reason
        };
        if !read.condition(condition.of).is_some_and(same) {
            let mut next = definition.clone();
            set_condition(&mut next, &condition, now);
            return Some(next);
        }
    }
    let accepted = accept(read, all);
    if read.0.pointer("/status/acceptedNames") != Some(&accepted.names) {
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
        let mut next = definition.clone();
        set_condition(&mut next, &names, now);
        if !read.is_established() {
            let (reason, message) = if names.is {
                ("Installing", "the initial names have been accepted")
            } else {
                ("NotAccepted", "not all names are accepted")
            };
            let established = Condition {
                of: "Established",
                is: false,
                reason,
                message,
            };
            set_condition(&mut next, &established, now);
        }
        object_mut(&mut next, "status").insert("acceptedNames".to_owned(), accepted.names);
        return Some(next);
    }
    let installing = read.condition("Established");
    if installing.is_some_and(|found| text(found, "reason") == "Installing")
        && read.is("NamesAccepted")
        && !read.is_deleting()
    {
        let established = Condition {
            of: "Established",
            is: true,
            reason: "InitialNamesAccepted",
            message: "the initial names have been accepted",
        };
        let mut next = definition.clone();
        set_condition(&mut next, &established, now);
        return Some(next);
    }
    None
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

fn approval(definition: Definition<'_>) -> Option<Condition<'_>> {
    if !is_protected(definition.group()) {
        return None;
    }
    let of = "KubernetesAPIApprovalPolicyConformant";
    let annotation = approval_annotation(definition.0)?;
    Some(if annotation.starts_with("unapproved") {
        Condition {
            of,
            is: false,
            reason: "UnapprovedAnnotation",
            message: "not approved",
        }
    } else {
        Condition {
            of,
            is: true,
            reason: "ApprovedAnnotation",
            message: "approved",
        }
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
/// `is_left`, the finalizer is gone. `None` if it has to wait.
pub fn complete_deletion(definition: &Value, is_left: bool, now: &str) -> Settled {
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
    if read.is_established() && reason != Some("InstanceDeletionInProgress") {
        let deleting = Condition {
            of: "Terminating",
            is: true,
            reason: "InstanceDeletionInProgress",
            message: "CustomResource deletion is in progress",
        };
        set_condition(&mut next, &deleting, now);
        return Some(next);
    }
    if is_left {
        return None;
    }
    let (reason, message) = if read.is_established() {
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
