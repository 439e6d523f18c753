//! The controller's writes, from the audit log of the embedded server.

use jiff::Timestamp;
use kube_test_control_plane::audit::AuditEntry;
use serde::Serialize;
use serde_json::Value;

/// The controller's user.
pub(super) const CONTROLLER: &str = "system:serviceaccount:kube-system:statefulset-controller";

/// One write of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Step {
    /// Seconds after the change.
    pub(crate) after: i64,
    /// `create`, `update`, `patch` or `delete`.
    pub(crate) verb: String,
    /// Resource, such as `pods`.
    pub(crate) resource: String,
    /// Name of the object.
    pub(crate) name: String,
    /// Revision of a created pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) revision: String,
}

impl Step {
    /// The step of an entry: a successful write of the controller to an object other than a status
    /// or an event.
    pub(super) fn of(entry: &AuditEntry, begin: Timestamp) -> Option<Self> {
        let is_step = entry.user == CONTROLLER
            && entry.is_change()
            && entry.subresource.is_empty()
            && entry.resource != "events";
        if !is_step {
            return None;
        }
        let body = entry.body_value();
        let revision = body.pointer("/metadata/labels/controller-revision-hash");
        Some(Self {
            after: entry.received.duration_since(begin).as_secs(),
            verb: entry.verb.name().to_owned(),
            resource: entry.resource.clone(),
            name: entry.name.clone(),
            revision: revision
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        })
    }
}
