//! The names of the indexes.

use std::fmt;

/// One index of a cache: a bucket of objects within one namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexKey {
    /// All objects of a namespace.
    Namespace(Box<str>),
    /// The objects of a namespace that no controller owns.
    Orphans(Box<str>),
    /// The objects that one controller owns, as `namespace/kind/name/uid`.
    Controller(Box<str>),
}

impl IndexKey {
    /// All objects of a namespace.
    pub fn namespace(namespace: &str) -> Self {
        Self::Namespace(namespace.into())
    }

    /// The objects of a namespace that no controller owns.
    pub fn orphans(namespace: &str) -> Self {
        Self::Orphans(namespace.into())
    }

    /// The objects of a namespace that this controller owns.
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
