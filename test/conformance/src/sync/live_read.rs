//! Cases once more, with live reads of the set that fail: those that the reference doesn't make.
//!
//! The reference gives claims away and deletes pods on what its cache says. The product looks at
//! the live set first, and a look that fails ends the sync before such a write. So each run is
//! compared in full with what the model makes of it.

use statefulset_client::fake::FaultError;

use super::case::Case;
use super::cluster;
use crate::diff::diff;
use crate::model::{Rules, run};
use crate::outcome::Outcome;

/// How the reads fail.
pub const FAILURES: [FaultError; 4] = [
    FaultError::InternalError,
    FaultError::Timeout,
    FaultError::Forbidden,
    FaultError::NotFound,
];

/// What differs from the model in runs of the case with failing reads. A set that retains every
/// claim isn't looked at; where nothing depends on a look, one run is enough.
///
/// # Errors
///
/// The case's objects can't be decoded.
pub fn differences(case: &mut Case) -> anyhow::Result<Vec<String>> {
    let mut differences = Vec::new();
    let policy = &case.set()?["spec"]["persistentVolumeClaimRetentionPolicy"];
    if policy["whenDeleted"] != "Delete" && policy["whenScaled"] != "Delete" {
        return Ok(differences);
    }
    let undisturbed = run(case, Rules::PRODUCT)?;
    for failure in FAILURES {
        let (expected, actual) = outcomes(case, failure)?;
        let differing = diff(&expected.to_value(), &actual.to_value());
        let told =
            |line: String| format!("with live reads of the set failing ({failure:?}): {line}");
        differences.extend(differing.into_iter().map(told));
        if expected == undisturbed {
            break;
        }
    }
    Ok(differences)
}

/// What the model and the product make of the case where every such read fails.
///
/// # Errors
///
/// The case's objects can't be decoded.
pub fn outcomes(case: &mut Case, failure: FaultError) -> anyhow::Result<(Outcome, Outcome)> {
    case.live_read_fault = Some(failure);
    let outcomes =
        run(case, Rules::PRODUCT).and_then(|expected| Ok((expected, cluster::sync(case)?.0)));
    case.live_read_fault = None;
    outcomes
}
