//! A core/v1 event before it is sent.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::{EventType, ObjectReference};

/// The namespace of events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

/// An event as stored, or about to be stored, on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    /// The object without its resource version, on which no limit depends.
    pub(super) object: Arc<ObjectReference>,
    pub(super) resource_version: String,
    pub(super) component: Arc<str>,
    pub(super) severity: EventType,
    pub(super) reason: String,
    pub(super) message: Arc<str>,
    pub(super) first_timestamp: Timestamp,
    pub(super) last_timestamp: Timestamp,
    pub(super) count: u32,
    /// True to set the reporting component; it is empty in combined events.
    pub(super) reporting: bool,
}

impl Event {
    /// Returns the event's namespace, which is the object's.
    pub(super) fn namespace(&self) -> &str {
        match self.object.namespace.as_str() {
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        }
    }

    /// Returns the object to POST.
    #[expect(clippy::expect_used, reason = "texts and numbers always form JSON")]
    pub(super) fn to_json(&self) -> String {
        let object = &*self.object;
        let body = Body {
            api_version: "v1",
            count: self.count,
            event_time: None,
            first_timestamp: seconds(self.first_timestamp),
            involved_object: Involved {
                api_version: &object.api_version,
                kind: &object.kind,
                name: &object.name,
                namespace: &object.namespace,
                resource_version: &self.resource_version,
                uid: &object.uid,
            },
            kind: "Event",
            last_timestamp: seconds(self.last_timestamp),
            message: &self.message,
            metadata: Metadata {
                name: &self.name,
                namespace: self.namespace(),
            },
            reason: &self.reason,
            reporting_component: if self.reporting { &self.component } else { "" },
            reporting_instance: "",
            source: Source {
                component: &self.component,
            },
            severity: self.severity.as_str(),
        };
        serde_json::to_string(&body).expect("texts and numbers always form JSON")
    }

    /// Returns the patch that updates an earlier event to this one.
    pub(super) fn to_patch(&self) -> String {
        json!({
            "count": self.count,
            "lastTimestamp": seconds(self.last_timestamp),
            "message": *self.message,
        })
        .to_string()
    }
}

/// An event's JSON, with its fields in alphabetical order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'a str,
    count: u32,
    event_time: Option<&'a str>,
    first_timestamp: String,
    involved_object: Involved<'a>,
    kind: &'a str,
    last_timestamp: String,
    message: &'a str,
    metadata: Metadata<'a>,
    reason: &'a str,
    reporting_component: &'a str,
    reporting_instance: &'a str,
    source: Source<'a>,
    #[serde(rename = "type")]
    severity: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Involved<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
}

#[derive(Serialize)]
struct Source<'a> {
    component: &'a str,
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
