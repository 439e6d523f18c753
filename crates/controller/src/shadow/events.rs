//! Events of the other controller, which show its writes and its failures.
//!
//! They are read only when a write or its absence needs an explanation.

use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::json::parse;
use serde_json::Value;
use statefulset_client::rest::RestClient;
use statefulset_controller_util::consistency::TrackedResource;
use statefulset_controller_util::stateful_set::StatefulSet;

use super::observable_write::{ObservableWrite, Verb};

/// Possible difference between the clocks of this program and of the writer of an event.
const SKEW: SignedDuration = SignedDuration::from_secs(30);
/// Maximum age of an event that counts as a current failure: the longest retry delay plus a margin.
const FAILURE_MAX: SignedDuration = SignedDuration::from_mins(20);

/// The events about a set.
pub(super) struct Events(Vec<Event>);

struct Event {
    reason: String,
    message: String,
    last: Option<Timestamp>,
}

impl Events {
    /// Reads the events about a set; `None` if they can't be read.
    pub(super) async fn read(client: &RestClient, set: &StatefulSet) -> Option<Self> {
        let (namespace, name) = (set.namespace(), set.name());
        let path = format!(
            "/api/v1/namespaces/{namespace}/events\
             ?fieldSelector=involvedObject.kind%3DStatefulSet%2CinvolvedObject.name%3D{name}"
        );
        let text = client.get_path(&path).await;
        let text = text.inspect_err(|error| {
            tracing::debug!(%error, "cannot read the events of the set");
        });
        let list = parse(&text.ok()?).ok()?;
        let items = list.get("items").and_then(Value::as_array);
        Some(Self(items?.iter().map(Event::new).collect()))
    }

    /// True if an event reports this write, and not the same one at an earlier time.
    pub(super) fn report(
        &self,
        write: &ObservableWrite,
        at: Timestamp,
        earlier: Option<Timestamp>,
    ) -> bool {
        let reason = match write.verb {
            Verb::Create => "SuccessfulCreate",
            Verb::Change => "SuccessfulUpdate",
            Verb::Delete => "SuccessfulDelete",
        };
        let is_about = |last: Timestamp| {
            let distance = at.duration_since(last);
            let is_nearer =
                |earlier: Timestamp| last.duration_since(earlier).abs() < distance.abs();
            distance <= SKEW && !earlier.is_some_and(is_nearer)
        };
        self.0.iter().any(|event| {
            event.reason == reason && event.names(write) && event.last.is_none_or(is_about)
        })
    }

    /// True if an event reports that this write fails.
    pub(super) fn report_failure(&self, write: &ObservableWrite, now: Timestamp) -> bool {
        self.0.iter().any(|event| {
            event.reason.starts_with("Failed")
                && event.names(write)
                && event
                    .last
                    .is_none_or(|last| now.duration_since(last) <= FAILURE_MAX)
        })
    }
}

impl Event {
    fn new(event: &Value) -> Self {
        let text = |member: &str| {
            let found = event.get(member).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let time = |member: &str| event.get(member)?.as_str()?.parse().ok();
        Self {
            reason: text("reason"),
            message: text("message"),
            last: time("lastTimestamp").or_else(|| time("eventTime")),
        }
    }

    /// True if the message names the kind and the object, as in `delete Pod web-1 in StatefulSet
    /// web successful`.
    fn names(&self, write: &ObservableWrite) -> bool {
        let kind = match write.resource {
            TrackedResource::Pods => "Pod",
            TrackedResource::PersistentVolumeClaims => "Claim",
            TrackedResource::StatefulSets | TrackedResource::ControllerRevisions => return false,
        };
        let words: Vec<&str> = self.message.split_whitespace().collect();
        words
            .windows(2)
            .any(|pair| matches!(pair, [word, name] if *word == kind && *name == &*write.name))
    }
}
