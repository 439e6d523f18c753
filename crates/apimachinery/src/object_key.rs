//! Keys of namespaced objects, for caches and work queues.

use std::fmt;
use std::sync::Arc;

/// Namespace and name of an object.
///
/// Cheap to clone, ordered by namespace and then name, printed as `namespace/name` (or the bare
/// name where the namespace is empty).
///
/// Upstream: `cache.ObjectName`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    namespace: Arc<str>,
    name: Arc<str>,
}

/// An invalid object key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected key format: {0:?}")]
pub struct ParseObjectKeyError(String);

impl ObjectKey {
    /// Creates a key; a cluster-scoped object has an empty namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Parses `namespace/name` or a bare name.
    ///
    /// # Errors
    ///
    /// More than one slash, with upstream's text.
    ///
    /// Upstream: `cache.SplitMetaNamespaceKey`.
    pub fn parse(text: &str) -> Result<Self, ParseObjectKeyError> {
        match text.split_once('/') {
            None => Ok(Self::new("", text)),
            Some((_, rest)) if rest.contains('/') => Err(ParseObjectKeyError(text.to_owned())),
            Some((namespace, name)) => Ok(Self::new(namespace, name)),
        }
    }

    /// The namespace; empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_print_and_parse_back() {
        for text in ["ns/web", "web"] {
            assert_eq!(ObjectKey::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn keys_have_namespace_and_name() {
        let key = ObjectKey::parse("ns/web").unwrap();
        assert_eq!((key.namespace(), key.name()), ("ns", "web"));
        let key = ObjectKey::parse("web").unwrap();
        assert_eq!((key.namespace(), key.name()), ("", "web"));
    }

    #[test]
    fn parse_rejects_a_second_slash() {
        let error = ObjectKey::parse("a/b/c").unwrap_err();
        assert_eq!(error.to_string(), r#"unexpected key format: "a/b/c""#);
    }
}
