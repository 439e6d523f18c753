//! Defaults of claims.

use serde_json::Value;

use super::member::Object;
use super::member::child_or_new;
use super::member::round_up_quantities;
use super::member::round_up_resources;
use super::member::set_if_absent;
use super::member::set_if_zero;

/// Sets the defaults of a PersistentVolumeClaim.
///
/// Upstream: `SetObjectDefaults_PersistentVolumeClaim`.
pub fn set_claim_defaults(claim: &mut Value) {
    if let Some(claim) = claim.as_object_mut() {
        set_claim_object_defaults(claim);
    }
}

/// Sets the defaults of a claim or of a set's claim template.
pub(super) fn set_claim_object_defaults(claim: &mut Object) {
    if let Some(status) = child_or_new(claim, "status") {
        set_if_zero(status, "phase", "Pending");
        round_up_quantities(status, "capacity");
        round_up_quantities(status, "allocatedResources");
    }
    if let Some(spec) = child_or_new(claim, "spec") {
        set_claim_spec_defaults(spec);
    }
}

/// Sets the defaults of a claim's spec.
///
/// Upstream: `SetDefaults_PersistentVolumeClaimSpec`.
pub(super) fn set_claim_spec_defaults(spec: &mut Object) {
    set_if_absent(spec, "volumeMode", "Filesystem");
    round_up_resources(spec, "resources");
}
