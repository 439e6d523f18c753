//! Failures of the model.

use statefulset_client::fake::CallError;

/// A failure with the texts of its members; only collected failures have several.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    texts: Vec<String>,
    /// Reason from the API, for a failure of a single call.
    pub(super) reason: Option<CallError>,
}

impl Failure {
    /// A failure of an API call.
    pub(super) fn api(reason: CallError, text: String) -> Self {
        Self {
            texts: vec![text],
            reason: Some(reason),
        }
    }

    /// A failure of the controller.
    pub(super) fn new(text: String) -> Self {
        Self {
            texts: vec![text],
            reason: None,
        }
    }

    /// Adds context; keeps the API's reason.
    pub(super) fn while_doing(self, what: &str) -> Self {
        Self {
            texts: vec![format!("{what}: {}", self.text())],
            reason: self.reason,
        }
    }

    /// Joins failures without duplicates; an empty list is success.
    pub(super) fn join(failures: Vec<Self>) -> Result<(), Self> {
        let mut texts: Vec<String> = Vec::new();
        for text in failures.into_iter().flat_map(|failure| failure.texts) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        if texts.is_empty() {
            Ok(())
        } else {
            Err(Self {
                texts,
                reason: None,
            })
        }
    }

    /// Text of the failure, with brackets around several members.
    pub(super) fn text(&self) -> String {
        match self.texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    }

    /// Returns true if the API reported a conflict.
    pub(super) fn is_conflict(&self) -> bool {
        self.reason == Some(CallError::Conflict)
    }

    /// Returns true if the API reported a missing object.
    pub(super) fn is_not_found(&self) -> bool {
        self.reason == Some(CallError::NotFound)
    }

    /// Returns true if the name is taken.
    pub(super) fn is_already_exists(&self) -> bool {
        self.reason == Some(CallError::AlreadyExists)
    }
}
