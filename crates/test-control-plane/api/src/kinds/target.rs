//! The part of an object that a request is about.

use super::Subresource;

/// Which part of an object a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The object itself, or its collection.
    Object,
    /// What is served below it.
    Part(Subresource),
}

impl Target {
    /// The subresource, if it is one.
    pub fn part(self) -> Option<Subresource> {
        match self {
            Self::Object => None,
            Self::Part(part) => Some(part),
        }
    }

    /// The subresource's name in URLs; empty for the object itself.
    pub fn subresource(self) -> &'static str {
        self.part().map_or("", Subresource::name)
    }
}
