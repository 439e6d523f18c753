//! Log entries in kube-apiserver's audit event format.

use kube_apimachinery::time;
use kube_test_control_plane_api::kinds::Verb;
use serde_json::{Map, Value, json};

use super::entry::AuditEntry;

/// Detail level of the written events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditLevel {
    /// Everything except bodies.
    #[default]
    Metadata,
    /// Also JSON request bodies.
    Request,
}

impl AuditLevel {
    fn name(self) -> &'static str {
        match self {
            Self::Metadata => "Metadata",
            Self::Request => "Request",
        }
    }
}

/// Converts an entry to an `Event` of `audit.k8s.io/v1`.
pub(super) fn event(entry: &AuditEntry, level: AuditLevel) -> Value {
    let uri = if entry.query.is_empty() {
        entry.path.clone()
    } else {
        format!("{}?{}", entry.path, entry.query)
    };
    let done = entry
        .received
        .saturating_add(entry.latency)
        .unwrap_or(entry.received);
    // A watch is logged when it begins.
    let stage = if entry.verb == Verb::Watch && entry.code == 200 {
        "ResponseStarted"
    } else {
        "ResponseComplete"
    };
    let sender = entry.impersonator.as_ref().unwrap_or(&entry.identity);
    let mut event = json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": level.name(),
        "auditID": entry.audit_id,
        "stage": stage,
        "requestURI": uri,
        "verb": entry.verb.name(),
        "user": sender.to_user_info(),
        "sourceIPs": ["127.0.0.1"],
        "userAgent": entry.user_agent,
        "objectRef": object_ref(entry),
        "responseStatus": response_status(entry),
        "requestReceivedTimestamp": time::format_micros(entry.received),
        "stageTimestamp": time::format_micros(done),
    });
    if level == AuditLevel::Request {
        let body = entry.body_value();
        if !body.is_null() {
            event["requestObject"] = body;
        }
    }
    if entry.impersonator.is_some() {
        event["impersonatedUser"] = entry.identity.to_user_info();
    }
    let mut annotations = json!(entry.annotations);
    if !entry.fault.is_empty() {
        annotations["test-control-plane/fault"] = json!(entry.fault);
    }
    if annotations != json!({}) {
        event["annotations"] = annotations;
    }
    event
}

fn object_ref(entry: &AuditEntry) -> Value {
    let members = [
        ("resource", &entry.resource),
        ("namespace", &entry.namespace),
        ("name", &entry.name),
        ("apiGroup", &entry.group),
        ("apiVersion", &entry.version),
        ("subresource", &entry.subresource),
    ];
    let filled = members.into_iter().filter(|(_, value)| !value.is_empty());
    let map: Map<String, Value> = filled
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    Value::Object(map)
}

fn response_status(entry: &AuditEntry) -> Value {
    let mut status = json!({"metadata": {}, "code": entry.code});
    if entry.code >= 400 {
        status["status"] = json!("Failure");
    }
    for (key, text) in [("message", &entry.message), ("reason", &entry.reason)] {
        if !text.is_empty() {
            status[key] = json!(text);
        }
    }
    status
}
