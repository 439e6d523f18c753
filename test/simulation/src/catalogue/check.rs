//! Expectations of a scenario.

use std::fmt::Debug;

/// Collects the expectations that failed.
#[derive(Debug, Default)]
pub struct Check(Vec<String>);

impl Check {
    /// Requires that the scenario's situation occurred. Otherwise its result proves nothing.
    pub fn occurred(&mut self, what: &str, did: bool) {
        if !did {
            self.fail(format!("did not occur: {what}"));
        }
    }

    /// Requires a result.
    pub fn holds(&mut self, what: &str, holds: bool) {
        if !holds {
            self.fail(format!("does not hold: {what}"));
        }
    }

    /// Requires a certain result.
    pub fn equal<T: Copy + Debug + PartialEq>(&mut self, what: &str, got: T, wanted: T) {
        if got != wanted {
            self.fail(format!("{what}: {got:?} instead of {wanted:?}"));
        }
    }

    /// Adds a failure.
    pub fn fail(&mut self, why: impl Into<String>) {
        self.0.push(why.into());
    }

    /// The failures.
    pub fn failures(&self) -> &[String] {
        &self.0
    }
}
