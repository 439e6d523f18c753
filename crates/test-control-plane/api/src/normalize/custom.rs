//! Custom resources in requests.

use kube_apimachinery::schema::{self, DecodeError, UnknownMembers};
use serde_json::Value;

use crate::custom::{CustomResource, each_metadata};
use crate::kinds::Kind;
use crate::object::Draft;
use crate::status::{ApiError, ApiResult};

/// Completes a request's object: metadata of the right types, defaults, no unspecified members.
///
/// # Errors
///
/// 400 for metadata of the wrong type.
pub(super) fn complete(custom: &CustomResource, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
    let value = &mut draft.value;
    if let Some(metadata) = value.get_mut("metadata") {
        coerce(metadata).map_err(|err| refused(kind, &err.to_string()))?;
    }
    custom.apply_schema(value);
    each_metadata(&custom.schema, value, "", &mut |metadata, path| {
        let sent = metadata.to_string();
        coerce(metadata)
            .map_err(|err| refused(kind, &format!("{path}: Invalid value: {sent}: {err}")))
    })
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

/// Drops unknown members of metadata, and the null creation time that its type writes.
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
