//! The review by admission policies in a build that can't evaluate them, and refuses to store them.

#![expect(
    clippy::unnecessary_wraps,
    reason = "the functions that evaluate policies can fail"
)]

use std::sync::Arc;

use kube_test_control_plane_api::status::ApiResult;

use super::input::Objects;
use super::mutation::Mutation;
use crate::route::ResourceRequest;
use crate::state::{Access, Reads};

/// Prepares nothing: no policy can be stored.
#[expect(clippy::unused_async, reason = "the preparation of policies waits")]
pub(super) async fn prepare(_: &Reads, _: Option<u64>) {}

/// Changes nothing: no policy can be stored.
pub(super) fn mutate(_: &mut Mutation<'_>) -> ApiResult<()> {
    Ok(())
}

/// Allows a request: no policy can be stored.
pub(super) fn review(
    _: &Arc<Access>,
    _: &ResourceRequest,
    _: &str,
    _: &Objects<'_>,
) -> ApiResult<()> {
    Ok(())
}
