//! Why something failed.

use statefulset_client::fake::FaultError;

/// A failure with the texts of its members, of which there are several only where failures were
/// collected.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    texts: Vec<String>,
    /// What the API answered, where the failure is about one answer.
    pub(super) reason: Option<FaultError>,
}

impl Failure {
    /// An answer of the API.
    pub(super) fn api(reason: FaultError, text: String) -> Self {
        Self {
            texts: vec![text],
            reason: Some(reason),
        }
    }

    /// A failure of our own.
    pub(super) fn new(text: String) -> Self {
        Self {
            texts: vec![text],
            reason: None,
        }
    }

    /// The failure, told with what was being done; still about the same answer.
    pub(super) fn while_doing(self, what: &str) -> Self {
        Self {
            texts: vec![format!("{what}: {}", self.text())],
            reason: self.reason,
        }
    }

    /// All failures as one, without repetitions; none is success.
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

    /// The text, with brackets around several members.
    pub(super) fn text(&self) -> String {
        match self.texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    }

    /// Whether the API said that the object has changed meanwhile.
    pub(super) fn is_conflict(&self) -> bool {
        self.reason == Some(FaultError::Conflict)
    }

    /// Whether the API knows no such object.
    pub(super) fn is_not_found(&self) -> bool {
        self.reason == Some(FaultError::NotFound)
    }

    /// Whether the name is taken.
    pub(super) fn is_already_exists(&self) -> bool {
        self.reason == Some(FaultError::AlreadyExists)
    }
}
