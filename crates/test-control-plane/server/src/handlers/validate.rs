//! Validation of a write, and of the sender's access to the parameters of a policy.

use kube_test_control_plane_api::kinds::Target;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::validation::{self, Findings, Subject};

use crate::access;
use crate::route::ResourceRequest;
use crate::state::Writes;

/// Returns the warnings of a valid write; `name` names the object in the error.
pub(super) fn validate(
    writes: &Writes,
    request: &ResourceRequest,
    subject: Subject<'_>,
    name: &str,
) -> ApiResult<Vec<String>> {
    let Findings {
        mut errors,
        warnings,
    } = if writes.validates {
        validation::validate(subject)
    } else {
        Findings::default()
    };
    if errors.is_empty() && subject.target == Target::Object {
        let access = &writes.access;
        errors.extend(access::check_parameters(
            access,
            request,
            subject.new,
            subject.old,
        ));
    }
    if errors.is_empty() {
        return Ok(warnings);
    }
    let object = &subject.new.value;
    Err(ApiError::invalid_object(
        subject.kind,
        object,
        name,
        &errors,
    ))
}
