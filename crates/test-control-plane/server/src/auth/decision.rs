//! The decision of an authorizer.

/// What the authorizers make of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed, for a reason, which may be empty.
    Allowed(String),
    /// Nobody allowed it, with what they had to say.
    NoOpinion(String),
}

impl Decision {
    /// Whether the request is allowed.
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// Why, or why not; may be empty.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Allowed(reason) | Self::NoOpinion(reason) => reason,
        }
    }
}
