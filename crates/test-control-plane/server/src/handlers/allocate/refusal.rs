//! Reasons to reject a service.

use kube_test_control_plane_api::status::FieldError;

/// A reason to reject a service.
pub(super) enum Refusal {
    /// 422 for a field.
    Field(FieldError),
    /// 500 with upstream's introduction.
    Internal(String),
    /// 500 without it.
    Plain(String),
}
