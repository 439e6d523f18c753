//! Validation of a write, and of the sender's access to the parameters of a policy.

use std::borrow::Cow;

use kube_test_control_plane_api::kinds::Target;
use kube_test_control_plane_api::normalize::Empties;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::validation::{self, Findings, Subject};

use crate::access;
use crate::route::ResourceRequest;
use crate::state::Writes;

/// Returns the warnings of a valid write; `empties` are those of the object as sent, and `name` names
/// it in the error.
pub(super) fn validate(
    writes: &Writes,
    request: &ResourceRequest,
    subject: Subject<'_>,
    (empties, name): (&Empties, &str),
) -> ApiResult<Vec<String>> {
    let Findings {
        mut errors,
        warnings,
    } = if writes.validates {
        find(subject, empties)
    } else {
        Findings::default()
    };
    let of_devices = access::check_admin_devices(&writes.reads, subject);
    errors.splice(0..0, of_devices);
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

/// Returns the findings about an object with its empty lists and maps. They show in the errors of an
/// update, but are no change of the stored object, which lacks them.
fn find(subject: Subject<'_>, empties: &Empties) -> Findings {
    let restored = |subject: Subject<'_>| {
        let sent = empties.restored(subject.kind, subject.new);
        let Cow::Owned(sent) = &sent else { return None };
        Some(validation::validate(Subject {
            new: sent,
            ..subject
        }))
    };
    // Immutable maps that are empty differ from none.
    let is_exact = matches!(&*subject.kind.storage, "configmaps" | "secrets");
    if subject.old.is_none() || is_exact {
        return restored(subject).unwrap_or_else(|| validation::validate(subject));
    }
    let found = validation::validate(subject);
    if found.errors.is_empty() {
        return found;
    }
    let fields = |found: &Findings| -> Vec<String> {
        let errors = found.errors.iter();
        errors.map(|error| error.field.clone()).collect()
    };
    let shown = restored(subject).filter(|shown| fields(shown) == fields(&found));
    shown.unwrap_or(found)
}
