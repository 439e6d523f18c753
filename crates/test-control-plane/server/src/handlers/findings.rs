//! Validation of a write, where the configuration asks for it.

use kube_test_control_plane_api::validation::{Findings, Subject, validate};

/// Returns the errors and warnings of a write; none without validation.
pub(super) fn findings(validates: bool, subject: Subject<'_>) -> Findings {
    if validates {
        validate(subject)
    } else {
        Findings::default()
    }
}
