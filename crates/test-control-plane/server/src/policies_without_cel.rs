//! The review by admission policies in a build that can't evaluate them, and refuses to store them.

#![expect(
    clippy::unnecessary_wraps,
    reason = "the functions that evaluate policies can fail"
)]

use std::sync::Arc;

use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::{DeleteOptions, WriteOptions};
use kube_test_control_plane_api::status::ApiResult;
use serde_json::Value;

use crate::route::ResourceRequest;
use crate::state::Access;

/// Changes nothing: no policy can be stored.
pub(crate) fn mutate_write(
    _: &Arc<Access>,
    _: &ResourceRequest,
    _: Option<&Draft>,
    _: &mut Draft,
    _: &WriteOptions,
) -> ApiResult<bool> {
    Ok(false)
}

/// Changes nothing: no policy can be stored.
pub(crate) fn mutate_scale(
    _: &Arc<Access>,
    _: &ResourceRequest,
    _: Value,
    new: Value,
    _: &WriteOptions,
) -> ApiResult<Value> {
    Ok(new)
}

/// Allows a write: no policy can be stored.
pub(crate) fn review_write(
    _: &Arc<Access>,
    _: &ResourceRequest,
    _: Option<&Draft>,
    _: &Draft,
    _: &WriteOptions,
) -> ApiResult<()> {
    Ok(())
}

/// Allows a body posted to a subresource: no policy can be stored.
pub(crate) fn review_posted(
    _: &Arc<Access>,
    _: &ResourceRequest,
    _: &Value,
    _: &WriteOptions,
) -> ApiResult<()> {
    Ok(())
}

/// Allows a deletion: no policy can be stored.
pub(crate) fn review_deletion(
    _: &Arc<Access>,
    _: &ResourceRequest,
    _: &Draft,
    _: &DeleteOptions,
) -> ApiResult<()> {
    Ok(())
}

/// Allows a connection: no policy can be stored.
pub(crate) fn review_connection(
    _: &Arc<Access>,
    _: &ResourceRequest,
    _: impl FnOnce() -> Value,
) -> ApiResult<()> {
    Ok(())
}
