//! The review of a request by webhooks.
//!
//! Upstream: the plug-ins `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`

mod call;
mod matching;
mod mutating;
mod validating;

pub(super) use mutating::mutate;
pub(super) use validating::review;
