//! The controller's writes, from the audit log of the embedded server.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube_test_control_plane::audit::AuditEntry;
use kube_test_control_plane::route::Verb;
use serde::Serialize;
use serde_json::Value;
use statefulset_controller::opt_ins::IN_PLACE_LABEL;

/// The controller's user.
pub(super) const CONTROLLER: &str = "system:serviceaccount:kube-system:statefulset-controller";

/// One write of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Step {
    /// Seconds after the change.
    pub(crate) after: i64,
    /// `create`, `update`, `patch`, `resize` or `delete`.
    pub(crate) verb: String,
    /// Resource, such as `pods`.
    pub(crate) resource: String,
    /// Name of the object.
    pub(crate) name: String,
    /// Revision of a created pod, or of one that is updated in place.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) revision: String,
    /// The reason for which a pod isn't updated in place.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
}

/// The reasons for which pods aren't updated in place, by their names, from the controller's events.
pub(super) fn reasons(entries: &[AuditEntry]) -> BTreeMap<String, String> {
    let events = entries.iter().filter(|entry| {
        entry.user == CONTROLLER && entry.resource == "events" && entry.verb == Verb::Create
    });
    let told = events.filter_map(|entry| {
        let event = entry.body_value();
        if event.get("reason")? != "NotUpdatedInPlace" {
            return None;
        }
        let message = event.get("message")?.as_str()?.strip_prefix("Pod ")?;
        let (pod, reason) = message.split_once(" is replaced, not updated in place: ")?;
        Some((pod.to_owned(), reason.to_owned()))
    });
    told.collect()
}

impl Step {
    /// The step of an entry: a successful write of the controller to an object other than a status
    /// or an event.
    pub(super) fn of(
        entry: &AuditEntry,
        begin: Timestamp,
        reasons: &BTreeMap<String, String>,
    ) -> Option<Self> {
        let resizes = entry.subresource == "resize";
        let is_step = entry.user == CONTROLLER
            && entry.is_change()
            && (entry.subresource.is_empty() || resizes)
            && entry.resource != "events";
        if !is_step {
            return None;
        }
        let body = entry.body_value();
        let labels = body.pointer("/metadata/labels");
        if labels.is_some_and(|labels| labels.get(IN_PLACE_LABEL).is_some()) {
            // The mark before the resize.
            return None;
        }
        let is_deleted = entry.verb == Verb::Delete && entry.resource == "pods";
        let reason = reasons.get(&entry.name).filter(|_| is_deleted);
        let revision = body.pointer("/metadata/labels/controller-revision-hash");
        Some(Self {
            after: entry.received.duration_since(begin).as_secs(),
            verb: if resizes { "resize" } else { entry.verb.name() }.to_owned(),
            resource: entry.resource.clone(),
            name: entry.name.clone(),
            revision: revision
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            reason: reason.cloned().unwrap_or_default(),
        })
    }
}
