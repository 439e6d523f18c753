//! Owners.

/// An owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// True if the owner controls the object.
    pub controller: bool,
}
