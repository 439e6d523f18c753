//! Texts as Go reads and writes them.

pub(crate) mod format;
pub(crate) mod json;
pub(crate) mod pattern;
