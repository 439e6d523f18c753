//! Name of the program.

/// Name of the program.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_NAME");
