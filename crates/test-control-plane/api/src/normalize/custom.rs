//! Custom resources in requests.

use kube_apimachinery::schema::{self, UnknownMembers};
use serde_json::Value;

use crate::custom::CustomResource;
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
        let sent = metadata.take();
        *metadata = schema::normalize_owned("ObjectMeta", sent, UnknownMembers::Drop, "").map_err(
            |err| {
                ApiError::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: {err}",
                    kind.kind, kind.version, kind.kind
                ))
            },
        )?;
    }
    without_null_time(value);
    custom.apply_schema(value);
    Ok(())
}

/// Removes the null creation time that the type of metadata writes.
fn without_null_time(value: &mut Value) {
    let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && metadata
            .get("creationTimestamp")
            .is_some_and(Value::is_null)
    {
        metadata.remove("creationTimestamp");
    }
}
