//! The decision of an authorizer.

/// Decision of the authorizers on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Allowed, for a reason, which may be empty.
    Allowed(String),
    /// Allowed by no authorizer, with their reasons.
    NoOpinion(String),
}

impl Decision {
    /// Reports whether the request is allowed.
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// Returns the reason; may be empty.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Allowed(reason) | Self::NoOpinion(reason) => reason,
        }
    }
}
