//! A core/v1 event before it is sent.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::{EventType, ObjectReference};

/// The namespace of events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

/// An event as stored, or about to be stored, on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) regarding: Arc<ObjectReference>,
    pub(super) component: Arc<str>,
    pub(super) severity: EventType,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) first_timestamp: Timestamp,
    pub(super) last_timestamp: Timestamp,
    pub(super) count: u32,
    /// True to set the reporting component; it is empty in combined events.
    pub(super) reporting: bool,
}

impl Event {
    /// Returns the event's namespace, which is the object's.
    pub(super) fn namespace(&self) -> &str {
        match self.regarding.namespace.as_str() {
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        }
    }

    /// Returns the object to POST.
    pub(super) fn to_json(&self) -> String {
        let ObjectReference {
            kind,
            namespace,
            name,
            uid,
            api_version,
            resource_version,
        } = &*self.regarding;
        let members = [
            ("kind", kind),
            ("namespace", namespace),
            ("name", name),
            ("uid", uid),
            ("apiVersion", api_version),
            ("resourceVersion", resource_version),
        ];
        let involved: serde_json::Map<_, _> = members
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.to_owned(), value.as_str().into()))
            .collect();
        json!({
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": self.name, "namespace": self.namespace()},
            "involvedObject": involved,
            "reason": self.reason,
            "message": self.message,
            "source": {"component": &*self.component},
            "firstTimestamp": seconds(self.first_timestamp),
            "lastTimestamp": seconds(self.last_timestamp),
            "count": self.count,
            "type": self.severity.as_str(),
            "eventTime": null,
            "reportingComponent": if self.reporting { &*self.component } else { "" },
            "reportingInstance": "",
        })
        .to_string()
    }

    /// Returns the patch that updates an earlier event to this one.
    pub(super) fn to_patch(&self) -> String {
        json!({
            "count": self.count,
            "lastTimestamp": seconds(self.last_timestamp),
            "message": self.message,
        })
        .to_string()
    }
}

/// Returns an event's name, made from the object's name and a time in nanoseconds.
///
/// Upstream: `util.GenerateEventName`; the caller handles names that aren't DNS subdomains.
pub(super) fn event_name(object_name: &str, moment: i128) -> String {
    format!("{object_name}.{moment:x}")
}

/// Returns true if the API accepts this as an event's name.
pub(super) fn is_dns_subdomain(name: &str) -> bool {
    let label_ok = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        label.bytes().all(inner)
            && !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(label_ok)
}

/// Formats a time as RFC 3339 with whole seconds.
fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
}
