//! What must never happen, noted if it does.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

/// What the kubelets have seen that must never happen: two pods of one name whose containers run
/// at a time. They see it as it happens, also while a node is cut off and the API server no longer
/// knows of the pods that it runs; a test that polls would miss it.
#[derive(Clone, Debug, Default)]
pub struct Invariants(Arc<Mutex<Vec<Violation>>>);

/// Something that must never happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it did.
    pub at: Timestamp,
    /// What it was.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

impl Invariants {
    /// What has happened so far that must not.
    pub fn violations(&self) -> Vec<Violation> {
        let violations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        violations.clone()
    }

    /// Sees to it that nothing has happened that must not.
    ///
    /// # Panics
    ///
    /// If something has, with all of it.
    #[track_caller]
    pub fn expect_none(&self) {
        let violations = self.violations();
        let text: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{}", text.join("\n"));
    }

    pub(super) fn record(&self, at: Timestamp, message: String) {
        tracing::error!("{message}");
        let mut violations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        violations.push(Violation { at, message });
    }
}
