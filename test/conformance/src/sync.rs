//! Cases of one sync on a frozen cluster.

mod case;
mod cluster;
pub mod live_read;

use anyhow::Context;

use crate::deviations;
use crate::diff::diff;
use crate::outcome::Outcome;
use crate::report::Verdict;

pub use case::Case;

/// Runs one case.
///
/// # Errors
///
/// The line is no case of this form.
pub fn run(line: &str) -> anyhow::Result<Verdict> {
    let mut case = Case::parse(line).context("no case of a sync")?;
    let expected = case.expected()?;
    let mut verdict = match cluster::sync(&case) {
        Ok((actual, rules)) => {
            let mut verdict = judge(&case, expected, &actual);
            verdict.deviations.extend(rules);
            verdict
        }
        Err(error) => return Ok(Verdict::broken(case.id, &error)),
    };
    verdict
        .differences
        .extend(live_read::differences(&mut case)?);
    Ok(verdict)
}

/// Compares an outcome with what is expected of the case, altered by the deviations.
pub fn judge(case: &Case, expected: Outcome, actual: &Outcome) -> Verdict {
    let (expected, deviations) = deviations::apply(case, expected);
    let differences = diff(&expected.to_value(), &actual.to_value());
    Verdict {
        id: case.id.clone(),
        differences,
        deviations,
    }
}

/// Runs a case and returns what it left behind.
///
/// # Errors
///
/// The case's objects can't be decoded.
pub fn outcome(case: &Case) -> anyhow::Result<Outcome> {
    cluster::sync(case).map(|(outcome, _)| outcome)
}
