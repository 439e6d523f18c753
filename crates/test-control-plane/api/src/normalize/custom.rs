//! Custom resources in requests.

use kube_apimachinery::schema::{self, DecodeError, UnknownMembers};
use serde_json::{Map, Value};

use crate::custom::{CustomResource, PathForm, each_embedded};
use crate::kinds::Kind;
use crate::object::Draft;
use crate::status::{ApiError, ApiResult, FieldError};

/// Completes a request's object: metadata of the right types, defaults, no unspecified fields.
///
/// # Errors
///
/// 400 for metadata of the wrong type.
pub(super) fn complete(custom: &CustomResource, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
    complete_metadata(kind, draft)?;
    let value = &mut draft.value;
    custom.apply_schema(value);
    let check = &mut |members: &mut Map<String, Value>, path: &str| {
        coerce_embedded(members, path)
            .map_err(|err| refused(kind, &format!("{}: {}", err.field, err.message)))
    };
    each_embedded(&custom.schema, value, "", PathForm::Keys, check)
}

/// Checks the types of the type and the metadata of an embedded object, and drops unknown fields of
/// its metadata.
fn coerce_embedded(members: &mut Map<String, Value>, path: &str) -> Result<(), FieldError> {
    for name in ["apiVersion", "kind"] {
        if let Some(found) = members.get(name).filter(|found| !found.is_string()) {
            let at = format!("{path}.{name}");
            return Err(FieldError::invalid(at, found, "must be a string"));
        }
    }
    if let Some(metadata) = members.get_mut("metadata").filter(|it| !it.is_null()) {
        let sent = metadata.to_string();
        coerce(metadata).map_err(|err| {
            FieldError::invalid_text(format!("{path}.metadata"), &sent, &err.to_string())
        })?;
    }
    Ok(())
}

/// Completes a custom resource that server-side apply has merged: metadata of the right types, defaults,
/// and no unspecified fields, which an object without named properties may have. Nulls are left to the
/// validation.
///
/// # Errors
///
/// 400 for metadata of the wrong type.
pub(super) fn complete_applied(
    custom: &CustomResource,
    kind: &Kind,
    draft: &mut Draft,
) -> ApiResult<()> {
    complete_metadata(kind, draft)?;
    custom.complete_applied(&mut draft.value);
    Ok(())
}

fn complete_metadata(kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
    let metadata = draft.value.get_mut("metadata");
    let coerced = metadata.map_or(Ok(()), coerce);
    coerced.map_err(|err| refused(kind, &err.to_string()))
}

/// Checks the metadata of a request's object.
///
/// # Errors
///
/// 400 for metadata of the wrong type.
pub(super) fn check_metadata(kind: &Kind, draft: &Draft) -> ApiResult<()> {
    let metadata = draft.value.get("metadata").cloned();
    let coerced = metadata.map_or(Ok(()), |mut metadata| coerce(&mut metadata));
    coerced.map_err(|err| refused(kind, &err.to_string()))
}

fn refused(kind: &Kind, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {why}",
        kind.kind, kind.version, kind.kind
    ))
}

/// Drops unknown fields of metadata, and the null creation time that its type writes.
fn coerce(metadata: &mut Value) -> Result<(), DecodeError> {
    let sent = metadata.take();
    *metadata = schema::normalize_owned("ObjectMeta", sent, UnknownMembers::Drop, "")?;
    let members = metadata.as_object_mut();
    if let Some(members) = members
        && members.get("creationTimestamp").is_some_and(Value::is_null)
    {
        members.remove("creationTimestamp");
    }
    Ok(())
}
