//! Error of an unanswered look-up.

/// A real server didn't answer whether an object exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoAnswer;
