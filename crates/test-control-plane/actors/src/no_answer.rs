//! The error of a look-up that a real server leaves open.

/// A real server doesn't say whether an object exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoAnswer;
