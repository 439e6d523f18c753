//! The target of a request: an object or a subresource.

use super::Subresource;

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The object itself, or its collection.
    Object,
    /// A subresource.
    Part(Subresource),
}

impl Target {
    /// Returns the subresource, if the target is one.
    pub fn part(self) -> Option<Subresource> {
        match self {
            Self::Object => None,
            Self::Part(part) => Some(part),
        }
    }

    /// Returns the subresource's name in URLs; empty for the object itself.
    pub fn subresource(self) -> &'static str {
        self.part().map_or("", Subresource::name)
    }
}
