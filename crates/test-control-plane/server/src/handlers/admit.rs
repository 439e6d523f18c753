//! Calls of the admission hooks.

use kube_test_control_plane_api::kinds::{Verb, stored};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::ApiResult;
use serde_json::Value;

use crate::admission::{AdmissionHooks, AdmissionRequest, Operation};
use crate::route::ResourceRequest;

/// Calls the hooks for an object before it is stored. Returns true if they changed it.
///
/// # Errors
///
/// A hook denies the write.
pub(crate) fn review_write(
    admission: &AdmissionHooks,
    request: &ResourceRequest,
    old: Option<&Draft>,
    new: &mut Draft,
    dry_run: bool,
) -> ApiResult<bool> {
    // A post to a subresource was reviewed with its body.
    if request.is_posted() && old.is_some() || admission.is_empty() {
        return Ok(false);
    }
    let kind = stored(&request.kind);
    let object = new.to_value();
    let name = new.metadata().name().to_owned();
    let operation = match old {
        None => Operation::Create,
        Some(_) => Operation::Update,
    };
    let reviewed = review_all(
        admission,
        AdmissionRequest {
            name: &name,
            object: object.clone(),
            old_object: old.map(Draft::to_value).unwrap_or_default(),
            ..question(request, operation, dry_run)
        },
    )?;
    if reviewed == object {
        return Ok(false);
    }
    // Verbatim text stays unless the hook changed it.
    let data = new
        .data
        .take()
        .filter(|_| reviewed["data"] == object["data"]);
    *new = Draft::from_value(kind, reviewed);
    new.data = data.or_else(|| new.data.take());
    Ok(true)
}

/// Calls the hooks for a body posted to a subresource.
///
/// # Errors
///
/// A hook denies the write.
pub(crate) fn review_posted(
    admission: &AdmissionHooks,
    request: &ResourceRequest,
    body: &Value,
    dry_run: bool,
) -> ApiResult<()> {
    if admission.is_empty() {
        return Ok(());
    }
    review_all(
        admission,
        AdmissionRequest {
            object: body.clone(),
            ..question(request, Operation::Create, dry_run)
        },
    )?;
    Ok(())
}

/// Calls the hooks for a deletion. The deletion by an eviction was reviewed as an eviction.
///
/// # Errors
///
/// A hook denies the write.
pub(crate) fn review_deletion(
    admission: &AdmissionHooks,
    request: &ResourceRequest,
    old: &Draft,
    dry_run: bool,
) -> ApiResult<()> {
    let asked = matches!(request.verb, Verb::Delete | Verb::DeleteCollection);
    if admission.is_empty() || !asked {
        return Ok(());
    }
    review_all(
        admission,
        AdmissionRequest {
            old_object: old.to_value(),
            ..question(request, Operation::Delete, dry_run)
        },
    )?;
    Ok(())
}

/// Returns the object as changed by the hooks.
fn review_all(admission: &AdmissionHooks, mut request: AdmissionRequest<'_>) -> ApiResult<Value> {
    for (name, hook) in admission.all() {
        hook.review(&mut request)
            .map_err(|denial| denial.into_error(&name, &request))?;
    }
    Ok(request.object)
}

/// Returns the hooks' input for a request, without objects.
fn question(
    request: &ResourceRequest,
    operation: Operation,
    dry_run: bool,
) -> AdmissionRequest<'_> {
    AdmissionRequest {
        operation,
        kind: stored(&request.kind),
        subresource: request.target.subresource(),
        namespace: &request.namespace,
        name: &request.name,
        user: request.user.as_deref(),
        dry_run,
        object: Value::Null,
        old_object: Value::Null,
    }
}
