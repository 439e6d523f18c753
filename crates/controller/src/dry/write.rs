//! A write of a dry sync.

use std::fmt;

use statefulset_controller_util::consistency::TrackedResource;

/// A write that was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DryWrite {
    /// Its verb.
    pub verb: DryVerb,
    /// Resource of the object.
    pub resource: TrackedResource,
    /// Name of the object.
    pub name: String,
    /// Body of the request.
    pub body: String,
    /// True if the caches contradict it: the object to create exists, or the object to change
    /// doesn't.
    pub is_refused: bool,
}

/// The verb of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DryVerb {
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl DryVerb {
    /// The verb as RBAC rules and audit logs spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Display for DryVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
