//! Size limits of stored objects, as in upstream's etcd.

use kube_apimachinery::schema::Version;
use serde_json::Value;

use kube_test_control_plane_api::kinds::{Kind, registry_key};
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::response::represent::protobuf;
use kube_test_control_plane_api::status::{ApiError, ApiResult};

/// Limit of a request to etcd in bytes.
const REQUEST_MAX: usize = 1_572_864;

/// Limit of a message sent by upstream's etcd client in bytes.
const MESSAGE_MAX: usize = 2_097_152;

/// Size of a request without its object and its key, which it contains three times, in bytes.
const REQUEST_OVERHEAD: usize = 48;

/// Total size of names and texts, in bytes, below which no object comes near the limit.
const SMALL: usize = REQUEST_MAX / 2;

/// Checks the size of an object. Upstream stores protobuf messages, so their size is the one
/// that counts.
///
/// # Errors
///
/// 500 with the message of etcd or of its client, which upstream returns unchanged.
pub(crate) fn check_stored_size(kind: &Kind, key: &Key, draft: &Draft) -> ApiResult<()> {
    let data = draft.data.as_ref().map_or(0, String::len);
    if text_size(&draft.value) + data < SMALL {
        return Ok(());
    }
    let text = draft.encode();
    let object = Version::NEWEST
        .type_of_kind(&kind.api_version(), &kind.kind)
        .and_then(|found| protobuf::object(found, &text).ok())
        .map_or(text.len(), |message| message.len());
    let path = registry_key(kind, &key.namespace, &key.name);
    let size = object + 3 * path.len() + REQUEST_OVERHEAD;
    if size > MESSAGE_MAX {
        return Err(ApiError::internal(format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max \
             ({size} vs. {MESSAGE_MAX})"
        )));
    }
    if size > REQUEST_MAX {
        return Err(ApiError::internal("etcdserver: request is too large"));
    }
    Ok(())
}

/// Returns the total size of names and texts in a value, plus an estimate for each other value.
fn text_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(text_size).sum(),
        Value::Object(map) => {
            let members = map.iter();
            members
                .map(|(name, value)| name.len() + text_size(value))
                .sum()
        }
    }
}
