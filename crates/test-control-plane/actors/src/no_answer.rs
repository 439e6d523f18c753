//! The error of an inconclusive look-up on a real server.

/// A real server's answer does not prove whether an object exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoAnswer;
