//! Finalizers of the garbage collector.

/// The finalizer that the garbage collector removes once dependents are gone.
pub const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer that the garbage collector removes once dependents are released.
pub const ORPHAN: &str = "orphan";
