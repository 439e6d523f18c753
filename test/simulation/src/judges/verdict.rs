//! The judges' findings.

use std::fmt;
use std::time::Duration;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// Time after the start of the run.
    pub at: Duration,
    /// The violation.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, at, message } = self;
        write!(f, "{rule} at {:.3} s: {message}", at.as_secs_f64())
    }
}

/// The judges' findings.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Broken rules.
    pub violations: Vec<Violation>,
    /// Number of writes, successful or not, that could let the garbage collector delete a claim.
    pub doomed: usize,
    /// Number of those whose spec a user changed in the last moment: after the controller looked
    /// and before the API server got the write.
    pub outrun: usize,
    /// The time from the look at the set to the write, in the API server, of each of them that
    /// arrived.
    pub windows: Vec<Duration>,
    /// Number of claims that the garbage collector removed.
    pub removed: usize,
    /// Number of those that the stored spec desired again by then.
    pub removed_kept: usize,
    /// Number of writes of the wrong controller that were stored before every API server applied the
    /// fence.
    pub overlaps: usize,
}

impl Verdict {
    pub(super) fn broken(&mut self, rule: &'static str, at: Duration, message: impl Into<String>) {
        self.violations.push(Violation {
            rule,
            at,
            message: message.into(),
        });
    }
}
