//! Cases of one sync on a frozen cluster.

mod cluster;
pub mod live_read;
pub mod successor;
mod verdict;

use anyhow::Context;

use crate::outcome::Outcome;
use crate::report::Verdict;
use crate::sync_case::Case;

pub use verdict::judge;

/// Runs one case, and the cases derived from it.
///
/// # Errors
///
/// The line is not a case of this format.
pub fn run(line: &str) -> anyhow::Result<Verdict> {
    let mut verdict = run_recorded(line)?;
    let mut case = Case::parse(line).context("not a case of a sync")?;
    for derived in [live_read::differences, successor::differences] {
        let differences = derived(&mut case);
        let failed = |error| vec![format!("a derived case can't be run: {error:#}")];
        verdict
            .differences
            .extend(differences.unwrap_or_else(failed));
    }
    Ok(verdict)
}

/// Runs one case as recorded.
///
/// # Errors
///
/// The line is not a case of this format.
fn run_recorded(line: &str) -> anyhow::Result<Verdict> {
    let case = Case::parse(line).context("not a case of a sync")?;
    let expected = case.expected()?;
    match cluster::sync(&case) {
        Ok((actual, rules)) => {
            let mut verdict = judge(&case, expected, &actual);
            verdict.deviations.extend(rules);
            Ok(verdict)
        }
        Err(error) => Ok(Verdict::broken(case.id, &error)),
    }
}

/// Runs a case and returns its outcome.
///
/// # Errors
///
/// The case's objects can't be decoded.
pub fn outcome(case: &Case) -> anyhow::Result<Outcome> {
    cluster::sync(case).map(|(outcome, _)| outcome)
}
