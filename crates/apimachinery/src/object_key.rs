//! The key of a namespaced object, as caches and work queues use it.

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

/// A text that is no object key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected key format: {0:?}")]
pub struct ParseObjectKeyError(String);

impl ObjectKey {
    /// Makes a key; a cluster-scoped object has an empty namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Splits `namespace/name` or a bare name.
    ///
    /// # Errors
    ///
    /// A text with more than one slash is refused with upstream's words.
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
    fn a_key_has_its_parts() {
        let key = ObjectKey::parse("ns/web").unwrap();
        assert_eq!((key.namespace(), key.name()), ("ns", "web"));
        let key = ObjectKey::parse("web").unwrap();
        assert_eq!((key.namespace(), key.name()), ("", "web"));
    }

    #[test]
    fn a_second_slash_is_refused_with_upstreams_words() {
        let error = ObjectKey::parse("a/b/c").unwrap_err();
        assert_eq!(error.to_string(), r#"unexpected key format: "a/b/c""#);
    }
}
