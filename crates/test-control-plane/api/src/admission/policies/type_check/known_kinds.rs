//! The kinds that policies are checked against.

use std::sync::Arc;

use kube_apimachinery::schema::Version;

use crate::kinds::Kind;

/// The kinds that policies are checked against.
#[derive(Clone, Copy, Debug)]
pub struct KnownKinds<'a> {
    /// The served kinds, in the order of discovery.
    pub kinds: &'a [Arc<Kind>],
    /// The version of the built-in types.
    pub version: Version,
    /// A number that upstream appends to the names of types: the nanoseconds of the current second.
    pub suffix: i32,
}
