//! Cases once more, with live reads that fail: those that the reference doesn't make.
//!
//! The reference gives claims away, repairs pods and deletes pods on what its cache says. The
//! product reads the live object first, and a read that fails ends the sync, or counts as a failed
//! write, before such a write. So each run is compared in full with what the model makes of it.

use statefulset_client::fake::FaultError;
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS};

use super::cluster;
use crate::diff::diff;
use crate::model::{Rules, run};
use crate::outcome::Outcome;
use crate::sync_case::{Case, LiveReadFault};

/// How the reads fail.
pub const FAILURES: [FaultError; 4] = [
    FaultError::InternalError,
    FaultError::Timeout,
    FaultError::Forbidden,
    FaultError::NotFound,
];

/// What the product reads live where the reference doesn't.
pub const RESOURCES: [Resource; 3] = [STATEFUL_SETS, PODS, PERSISTENT_VOLUME_CLAIMS];

/// What differs from the model in runs of the case with failing reads. A set that retains every
/// claim isn't looked at; where nothing depends on a read, one run is enough.
///
/// # Errors
///
/// The case's objects can't be decoded.
pub fn differences(case: &mut Case) -> anyhow::Result<Vec<String>> {
    let mut differences = Vec::new();
    let policy = &case.set()?["spec"]["persistentVolumeClaimRetentionPolicy"];
    let retains_all = policy["whenDeleted"] != "Delete" && policy["whenScaled"] != "Delete";
    let undisturbed = run(case, Rules::PRODUCT)?;
    for resource in RESOURCES {
        if retains_all && resource.plural == STATEFUL_SETS.plural {
            continue;
        }
        for error in FAILURES {
            let fault = LiveReadFault {
                resource: resource.plural,
                error,
            };
            let expected = expected(case, fault)?;
            differences.extend(differing(fault, &expected, &actual(case, fault)?));
            if expected == undisturbed {
                break;
            }
        }
    }
    Ok(differences)
}

/// What differs between two outcomes under a fault.
pub fn differing(fault: LiveReadFault, expected: &Outcome, actual: &Outcome) -> Vec<String> {
    let LiveReadFault { resource, error } = fault;
    let differing = diff(&expected.to_value(), &actual.to_value());
    let told = |line: String| format!("with live reads of {resource} failing ({error:?}): {line}");
    differing.into_iter().map(told).collect()
}

/// What the model makes of the case where every such read fails.
///
/// # Errors
///
/// The case's objects can't be decoded.
pub fn expected(case: &mut Case, fault: LiveReadFault) -> anyhow::Result<Outcome> {
    case.live_read_fault = Some(fault);
    let expected = run(case, Rules::PRODUCT);
    case.live_read_fault = None;
    expected
}

/// What the product makes of the case where every such read fails.
///
/// # Errors
///
/// The case's objects can't be decoded.
pub fn actual(case: &mut Case, fault: LiveReadFault) -> anyhow::Result<Outcome> {
    case.live_read_fault = Some(fault);
    let actual = cluster::sync(case);
    case.live_read_fault = None;
    Ok(actual?.0)
}
