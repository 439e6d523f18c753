//! Events of pods and claims.

use std::fmt::Display;

use statefulset_client::error::Error as ApiError;
use statefulset_client::recorder::EventType;

use super::SetPodControl;
use crate::error::Error;

/// The action that an event reports.
#[derive(Clone, Copy)]
pub(super) enum Verb {
    Create,
    Update,
    Delete,
}

impl Verb {
    /// The verb in the event's reason.
    fn text(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
        }
    }

    /// The first word of the event's message.
    fn first_word(self, lower_case: bool) -> &'static str {
        match self {
            Self::Create if lower_case => "create",
            Self::Update if lower_case => "update",
            Self::Delete if lower_case => "delete",
            _ => self.text(),
        }
    }
}

impl SetPodControl<'_> {
    /// Upstream: `recordPodEvent`.
    pub(super) fn record_pod_event(
        &self,
        verb: Verb,
        pod: &str,
        error: Option<&(impl Display + ?Sized)>,
    ) {
        let first = verb.first_word(self.control.lower_case_events);
        let set = self.set.name();
        let outcome = match error {
            None => format!("{first} Pod {pod} in StatefulSet {set} successful"),
            Some(error) => format!("{first} Pod {pod} in StatefulSet {set} failed error: {error}"),
        };
        self.record(verb, error.is_some(), &outcome);
    }

    /// Upstream: `recordClaimEvent`.
    pub(super) fn record_claim_event(&self, pod: &str, claim: &str, error: Option<&ApiError>) {
        let first = Verb::Create.first_word(self.control.lower_case_events);
        let set = self.set.name();
        let outcome = match error {
            None => format!("{first} Claim {claim} Pod {pod} in StatefulSet {set} success"),
            Some(error) => format!(
                "{first} Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}"
            ),
        };
        self.record(Verb::Create, error.is_some(), &outcome);
    }

    fn record(&self, verb: Verb, failed: bool, message: &str) {
        let verb = verb.text();
        if failed {
            self.warn(&format!("Failed{verb}"), message);
        } else {
            let reason = format!("Successful{verb}");
            let set = self.set.object_reference();
            let recorder = &self.control.recorder;
            recorder.event(&set, EventType::Normal, &reason, message);
        }
    }

    /// Records a warning about the set.
    pub fn warn(&self, reason: &str, message: &str) {
        let set = self.set.object_reference();
        let recorder = &self.control.recorder;
        recorder.event(&set, EventType::Warning, reason, message);
    }

    /// Records a failure event and returns the error.
    pub(super) fn failed(&self, verb: Verb, pod: &str, error: Error) -> Error {
        self.record_pod_event(verb, pod, Some(&error));
        error
    }
}
