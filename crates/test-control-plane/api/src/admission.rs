//! Admission: the attributes of a request, and the policies and webhooks that review it.
//!
//! The room has no state and knows no store: policies and webhooks are read from their objects, and
//! asked about one request.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission`

mod attributes;
mod constraints;
mod failure_policy;
#[cfg(feature = "cel")]
pub mod policies;
pub mod webhooks;

pub use attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation, User};
pub use constraints::{Constraints, Equivalent, Namespace};
pub use failure_policy::FailurePolicy;
