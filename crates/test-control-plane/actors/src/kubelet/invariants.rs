//! Record of violated invariants.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

/// Violations seen by the kubelets: two pods with one name whose containers run at the same time.
/// The kubelets see this immediately, even on a lost node whose pods the API server no longer
/// knows; a polling test would miss it.
#[derive(Clone, Debug, Default)]
pub struct Invariants(Arc<Mutex<Vec<Violation>>>);

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

    /// Asserts that no invariant was violated.
    ///
    /// # Panics
    ///
    /// Panics with a list of all violations, if any.
    #[track_caller]
    pub fn expect_none(&self) {
        let violations = self.violations();
        let text: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{}", text.join("\n"));
    }

    pub(crate) fn record(&self, at: Timestamp, message: String) {
        tracing::error!("{message}");
        let mut violations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        violations.push(Violation { at, message });
    }
}
