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
