//! Regressions: small plans that once broke a rule, kept so that they never do again.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// A plan that once broke a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Regression {
    /// The finding, in a sentence.
    pub found: String,
    /// The rule that it broke.
    pub rule: String,
    /// The plan.
    pub plan: Plan,
}

impl Regression {
    /// Reads a regression from its JSON text.
    ///
    /// # Errors
    ///
    /// The text is no regression.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the regression as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
