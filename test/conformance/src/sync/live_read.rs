//! Derived cases with failing live reads that upstream doesn't make.
//!
//! Upstream changes claim owners, repairs pods and deletes pods based on its cache. The
//! product reads the live object first, and a failed read ends the sync, or counts as a failed
//! write, before such a write. Each run is compared in full with the model.

use statefulset_client::fake::CallError;
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS};

use super::cluster;
use crate::diff::diff;
use crate::model::{Rules, run};
use crate::outcome::Outcome;
use crate::sync_case::{Case, LiveReadFault};

/// Errors of the failing reads.
pub const FAILURES: [CallError; 4] = [
    CallError::InternalError,
    CallError::Timeout,
    CallError::Forbidden,
    CallError::NotFound,
];

/// Resources that the product reads live and upstream doesn't.
pub const RESOURCES: [Resource; 3] = [STATEFUL_SETS, PODS, PERSISTENT_VOLUME_CLAIMS];

/// Differences from the model in runs of the case with failing reads. Skips reads of a set that
/// retains all claims; if nothing depends on a read, one run suffices.
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

/// Differences between two outcomes with a fault.
pub fn differing(fault: LiveReadFault, expected: &Outcome, actual: &Outcome) -> Vec<String> {
    let LiveReadFault { resource, error } = fault;
    let differing = diff(&expected.to_value(), &actual.to_value());
    let with_context =
        |line: String| format!("with live reads of {resource} failing ({error:?}): {line}");
    differing.into_iter().map(with_context).collect()
}

/// The model's outcome of the case if all these reads fail.
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

/// The product's outcome of the case if all these reads fail.
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
