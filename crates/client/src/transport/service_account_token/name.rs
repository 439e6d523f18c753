//! Name of a service account.

use std::fmt;

/// A service account. Formats as `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccountName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ServiceAccountName {
    /// Creates a name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns its user name at the API server. Upstream: `serviceaccount.MakeUsername`.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl fmt::Display for ServiceAccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
