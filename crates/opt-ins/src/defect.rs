//! Annotations that can't be used.

use crate::carrier::{Carrier, PREFIX};

/// An annotation that can't be used as it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// The value has no meaning.
    #[error("{annotation}: {value:?}: {problem}", annotation = .carrier.annotation())]
    Value {
        /// The carrier.
        carrier: Carrier,
        /// The value.
        value: String,
        /// The expected form.
        problem: &'static str,
    },
    /// The key begins with the prefix of the carriers, and no carrier has it.
    #[error("{PREFIX}{0}: unknown annotation")]
    Unknown(String),
    /// The set's update strategy has no rollout to pause, limit or carry out in place.
    #[error(
        "{annotation}: only the update strategy RollingUpdate can be paused, limited or carried \
         out in place",
        annotation = .0.annotation()
    )]
    NoRollout(Carrier),
    /// The set has no such claim template.
    #[error(
        "{annotation}: the set has no claim template {0:?}",
        annotation = Carrier::ClaimSize.annotation()
    )]
    NoTemplate(String),
}
