//! Index keys.

use std::fmt;

/// One index of a cache: a bucket of objects within one namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexKey {
    /// All objects in a namespace.
    Namespace(Box<str>),
    /// The objects in a namespace without a controller owner.
    Orphans(Box<str>),
    /// The objects owned by one controller, as `namespace/kind/name/uid`.
    Controller(Box<str>),
}

impl IndexKey {
    /// Returns the key of all objects in a namespace.
    pub fn namespace(namespace: &str) -> Self {
        Self::Namespace(namespace.into())
    }

    /// Returns the key of a namespace's objects without a controller owner.
    pub fn orphans(namespace: &str) -> Self {
        Self::Orphans(namespace.into())
    }

    /// Returns the key of a namespace's objects owned by this controller.
    pub fn controller(namespace: &str, kind: &str, name: &str, uid: &str) -> Self {
        let parts = [namespace, kind, name, uid];
        Self::Controller(parts.join("/").into_boxed_str())
    }
}

impl fmt::Display for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace(text) | Self::Orphans(text) | Self::Controller(text) => {
                f.write_str(text)
            }
        }
    }
}
