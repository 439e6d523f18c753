//! The deliberate deviations, each a pure rule from a case to an altered expectation.

use crate::outcome::Outcome;
use crate::sync::Case;

/// Alters what is expected of a case; returns the names of the rules that changed anything.
pub fn apply(_case: &Case, expected: Outcome) -> (Outcome, Vec<&'static str>) {
    (expected, Vec::new())
}
