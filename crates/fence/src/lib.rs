//! The fence: admission policies that give each namespace exactly one StatefulSet controller.
//!
//! In namespaces with the label of a [`NamespaceSelector`] the policy *fence* denies the writes of
//! the built-in controller; everywhere else, and always in `kube-system`, the policy *mirror* denies
//! this program's writes. [`FencePolicies`] holds both with their bindings, as they are shipped.

// No server input may panic here.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable
    )
)]

mod foreign;
mod gap;
pub mod names;
mod namespace_selector;
mod policies;
mod probe;
mod stored_part;

pub use foreign::{Trace, is_foreign};
pub use gap::{Gap, PartKind, Problem, gap};
pub use namespace_selector::{NamespaceSelector, ParseNamespaceSelectorError};
pub use policies::{FencePolicies, FenceSettings, SameUser};
pub use probe::{Policy, Probed};
pub use stored_part::StoredPart;
