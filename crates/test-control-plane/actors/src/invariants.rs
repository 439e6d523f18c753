//! Records violations of invariants.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

/// Violations that the kubelets have seen: two pods of one name with running containers. They
/// notice even a short overlap, and one on a lost node whose pods the API server no longer knows; a
/// polling test would miss both.
#[derive(Clone, Debug, Default)]
pub struct Invariants(Arc<Mutex<Vec<Violation>>>);

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Time of the violation.
    pub at: Timestamp,
    /// Description of the violation.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

impl Invariants {
    /// Returns the violations so far.
    pub fn violations(&self) -> Vec<Violation> {
        let violations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        violations.clone()
    }

    /// Asserts that there are no violations.
    ///
    /// # Panics
    ///
    /// Panics with the list of violations if there are any.
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
