//! Validation of a write, where the configuration asks for it.

use kube_test_control_plane_api::validation::{Findings, Subject, validate};

use crate::config::ServerConfig;

/// Returns the errors and warnings of a write; none without validation.
pub(super) fn findings(config: &ServerConfig, subject: Subject<'_>) -> Findings {
    if config.validates {
        validate(subject)
    } else {
        Findings::default()
    }
}
