//! Kind and apiVersion in the bodies of custom resources.

use serde_json::Value;

use super::unrecognized::unrecognized;
use crate::go;
use crate::kinds::Kind;
use crate::members::text;
use crate::object::Draft;
use crate::status::{ApiError, ApiResult};

/// Checks kind and apiVersion. Another kind is an error of validation. An error quotes the body as sent.
///
/// # Errors
///
/// 400 if the kind is missing or the version differs from the URL's.
pub(super) fn check_type(kind: &Kind, draft: &mut Draft, body: &[u8]) -> ApiResult<()> {
    let value = &draft.value;
    if text(value, "kind").is_empty() {
        let why = format!(
            "Object 'Kind' is missing in '{}'",
            String::from_utf8_lossy(body)
        );
        return Err(unrecognized(&kind.kind, &why, body));
    }
    let (found, wanted) = (text(value, "apiVersion"), kind.api_version());
    if found != wanted {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({found}) does not match the expected API version \
             ({wanted})"
        )));
    }
    let metadata = value.get("metadata").filter(|found| !found.is_null());
    if let Some(metadata) = metadata.filter(|found| !found.is_object()) {
        let found = go::json::type_name(&metadata.to_string());
        return Err(wrong_metadata(kind, found));
    }
    if metadata.is_none() {
        draft.value["metadata"] = Value::Object(serde_json::Map::new());
    }
    Ok(())
}

fn wrong_metadata(kind: &Kind, found: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: json: cannot unmarshal {found} into Go \
         value of type v1.ObjectMeta",
        kind.kind, kind.version, kind.kind
    ))
}
