//! Webhooks: whom a stored configuration calls about which requests, the reviews, and the reading of
//! responses.
//!
//! Nothing here sends a request. The reviews of conversions use the same clients and responses.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/webhook`, `k8s.io/apiserver/pkg/util/webhook`

mod client;
mod conversion;
mod definition;
mod reply;
mod verdict;

pub use client::{ClientConfig, Target};
pub use conversion::{CONVERSION_TIMEOUT, Conversion, Converter};
pub use definition::Webhook;
pub use reply::Reply;
pub use verdict::{Failure, Patch, Verdict};
