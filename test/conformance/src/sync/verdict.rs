//! The verdict on an outcome.

use crate::deviations;
use crate::diff::diff;
use crate::outcome::Outcome;
use crate::report::Verdict;
use crate::sync_case::Case;

/// Compares an outcome with the case's expectation, altered by the deviations.
pub fn judge(case: &Case, expected: Outcome, actual: &Outcome) -> Verdict {
    let (expected, deviations) = deviations::apply(case, expected);
    let differences = diff(&expected.to_value(), &actual.to_value());
    Verdict {
        id: case.id.clone(),
        differences,
        deviations,
    }
}
