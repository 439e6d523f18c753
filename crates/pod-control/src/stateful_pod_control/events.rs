//! Events about a set's pods and claims.

use std::fmt::Display;

use statefulset_client::error::Error as ApiError;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::{EventRecorder, EventType};
use statefulset_controller_util::stateful_set::StatefulSet;

/// Actions that events report.
pub(super) const CREATE: &str = "Create";
pub(super) const UPDATE: &str = "Update";
pub(super) const DELETE: &str = "Delete";

/// The events about one set.
#[derive(Clone, Copy)]
pub struct SetEvents<'a> {
    pub(super) recorder: &'a dyn EventRecorder,
    pub(super) set: &'a StatefulSet,
    pub(super) gates: FeatureGates,
}

impl SetEvents<'_> {
    /// Upstream: `recordPodEvent`.
    pub(super) fn record_pod_event(self, verb: &str, pod: &str, error: Option<&impl Display>) {
        self.record(verb, &format!("Pod {pod}"), "successful", error);
    }

    /// Upstream: `recordClaimEvent`.
    pub(super) fn record_claim_event(self, pod: &str, claim: &str, error: Option<&ApiError>) {
        // As in upstream, only the text of a failure has this word.
        let link = error.map_or("", |_| " for");
        let subject = format!("Claim {claim}{link} Pod {pod}");
        self.record(CREATE, &subject, "success", error);
    }

    fn record(self, verb: &str, subject: &str, success: &str, error: Option<&impl Display>) {
        let set = self.set.name();
        let mut start = verb.to_owned();
        if self.gates.events_begin_in_lower_case() {
            start.make_ascii_lowercase();
        }
        let message = format!("{start} {subject} in StatefulSet {set}");
        if let Some(error) = error {
            let message = format!("{message} failed error: {error}");
            self.warn(&format!("Failed{verb}"), &message);
        } else {
            let reason = format!("Successful{verb}");
            self.event(EventType::Normal, &reason, &format!("{message} {success}"));
        }
    }

    /// Records a warning about the set.
    pub fn warn(self, reason: &str, message: &str) {
        self.event(EventType::Warning, reason, message);
    }

    /// Records the completion of something about the set.
    pub fn note(self, reason: &str, message: &str) {
        self.event(EventType::Normal, reason, message);
    }

    fn event(self, event_type: EventType, reason: &str, message: &str) {
        let set = self.set.object_reference();
        self.recorder.event(&set, event_type, reason, message);
    }
}
