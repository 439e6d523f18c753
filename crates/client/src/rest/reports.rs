//! Reports of failed requests to the health log.

use std::sync::Arc;

use super::api_health::{ApiHealthLog, Right};
use super::call::AtOnce;
use crate::error::Error;
use crate::fence::Fence;

/// The health log of a client, and the reasons to keep a failure out of it.
#[derive(Clone, Default)]
pub(super) struct Reports {
    pub(super) health: Arc<ApiHealthLog>,
    /// The fence inside the client's retry layer.
    pub(super) fence: Option<Fence>,
    /// Present if the caller sends failed requests again.
    pub(super) at_once: Option<AtOnce>,
}

impl Reports {
    /// Reports a failure to the health log, unless the request is sent again, or the fence may have
    /// cut the connection: HTTP/2 hides the cause.
    pub(super) fn failed(&self, right: &Right, err: &Error) {
        if err.rejects_shard_selector() {
            return;
        }
        let is_closed = self.fence.as_ref().is_some_and(|it| it.check().is_err());
        let is_sent_again = self.at_once.is_some() && err.resend_after().is_some();
        if !(is_closed && err.is_transport() || is_sent_again) {
            self.health.failed(right, err);
        }
    }
}
