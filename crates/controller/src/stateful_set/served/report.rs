//! Reports of the served namespaces: log, events, metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use statefulset_client::recorder::{EventRecorder, EventType, ObjectReference};
use statefulset_client::resource::NAMESPACES;

use crate::metrics::{FenceMetrics, ServedNamespaces};

/// The reason why a namespace is no longer served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fall {
    /// The label went, or the namespace.
    Left,
    /// The label went and returned.
    LabelChanged,
    /// An object of the fence changed; holds the gap, if any.
    PolicyChanged(Option<String>),
    /// A probe passed.
    NotInForce(String),
    /// The mirror denied a write.
    Denied,
    /// Another controller wrote.
    Foreign(String),
}

impl Fall {
    /// Returns the name in metrics.
    const fn name(&self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::LabelChanged => "label",
            Self::PolicyChanged(_) => "policy",
            Self::NotInForce(_) => "probe",
            Self::Denied => "denied",
            Self::Foreign(_) => "foreign",
        }
    }
}

impl std::fmt::Display for Fall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Left => f.write_str("the namespace lost its label"),
            Self::LabelChanged => f.write_str("the namespace lost its label for a moment"),
            Self::PolicyChanged(Some(gap)) => f.write_str(gap),
            Self::PolicyChanged(None) => f.write_str("an object of the fence was changed"),
            Self::NotInForce(problem) | Self::Foreign(problem) => f.write_str(problem),
            Self::Denied => f.write_str("the API server denied a write of this program"),
        }
    }
}

/// Logs, records and counts what happens to the namespaces, each once.
pub(super) struct Report {
    recorder: Arc<dyn EventRecorder>,
    metrics: Arc<dyn FenceMetrics>,
    states: Mutex<BTreeMap<Box<str>, State>>,
}

/// The state of a namespace with the label.
enum State {
    /// Not served, for the last logged reason.
    Waiting(String),
    Served,
}

impl Report {
    pub(super) fn new(recorder: Arc<dyn EventRecorder>, metrics: Arc<dyn FenceMetrics>) -> Self {
        Self {
            recorder,
            metrics,
            states: Mutex::default(),
        }
    }

    /// Reports that a namespace has the label; one whose fence has fallen keeps its reason.
    pub(super) fn joined(&self, namespace: &str) {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = states.contains_key(namespace);
        drop(states);
        if !is_known {
            self.change(namespace, Some(State::Waiting(String::new())));
        }
    }

    /// Reports why a namespace isn't served yet.
    pub(super) fn waiting(&self, namespace: &str, reason: &str) {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let last = states.get(namespace);
        if matches!(last, Some(State::Waiting(last)) if last == reason) {
            return;
        }
        drop(states);
        tracing::warn!(namespace, "not serving the namespace yet: {reason}");
        self.change(namespace, Some(State::Waiting(reason.to_owned())));
    }

    /// Reports that a namespace is served.
    pub(super) fn served(&self, namespace: &str) {
        tracing::info!(namespace, "the fence is proved: serving the namespace");
        let message = "The StatefulSets of this namespace are served by \
                       statefulset-controller-manager; the fence is proved";
        self.event(namespace, EventType::Normal, "FenceProved", message);
        self.change(namespace, Some(State::Served));
    }

    /// Reports that a namespace is no longer served.
    pub(super) fn fell(&self, namespace: &str, fall: &Fall) {
        self.metrics.fell(fall.name());
        if *fall == Fall::Left {
            tracing::info!(namespace, "{fall}: no longer serving it");
            return self.change(namespace, None);
        }
        tracing::warn!(
            namespace,
            "the fence has fallen: {fall}; writing nothing in the namespace before a new proof"
        );
        let message = format!(
            "statefulset-controller-manager writes nothing in this namespace before a new proof: \
             {fall}"
        );
        self.event(namespace, EventType::Warning, "FenceFallen", &message);
        self.change(namespace, Some(State::Waiting(fall.to_string())));
    }

    /// Reports that a namespace lost its label before it was served.
    pub(super) fn left(&self, namespace: &str) {
        self.change(namespace, None);
    }

    fn change(&self, namespace: &str, state: Option<State>) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            Some(state) => states.insert(namespace.into(), state),
            None => states.remove(namespace),
        };
        let is_served = |state: &&State| matches!(state, State::Served);
        let served = states.values().filter(is_served).count();
        self.metrics.namespaces(ServedNamespaces {
            served,
            waiting: states.len() - served,
        });
    }

    fn event(&self, namespace: &str, event_type: EventType, reason: &str, message: &str) {
        let regarding = ObjectReference {
            kind: NAMESPACES.kind.to_owned(),
            namespace: String::new(),
            name: namespace.to_owned(),
            uid: String::new(),
            api_version: NAMESPACES.api_version(),
            resource_version: String::new(),
        };
        let recorder = &self.recorder;
        recorder.event(&regarding, event_type, reason, message);
    }
}
