//! Storage keys of objects, in the order of upstream's storage.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::kinds::Kind;

/// The storage key of an object.
///
/// Keys are ordered as the bytes of `namespace/name`, not as pairs: `prod-eu/a` comes before
/// `prod/a`, because a hyphen is smaller than a slash. Lists have this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The storage name of the kind.
    pub storage: Arc<str>,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// Returns the key of an object of `kind`.
    pub fn new(kind: &Kind, namespace: &str, name: &str) -> Self {
        Self {
            storage: Arc::clone(&kind.storage),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns the key of an object with this storage name.
    pub fn of(storage: &str, namespace: &str, name: &str) -> Self {
        Self {
            storage: storage.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.storage
            .cmp(&other.storage)
            .then_with(|| compare_namespaces(&self.namespace, &other.namespace))
            .then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares namespaces as if each ended with a slash. An empty one comes first.
fn compare_namespaces(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.is_empty() || other.is_empty() {
        return one.len().cmp(&other.len());
    }
    let shared = one.len().min(other.len());
    one[..shared].cmp(&other[..shared]).then_with(|| {
        let next = |bytes: &[u8]| bytes.get(shared).copied().unwrap_or(b'/');
        next(one)
            .cmp(&next(other))
            .then(one.len().cmp(&other.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> Key {
        Key::of("pods", namespace, name)
    }

    fn path(key: &Key) -> String {
        format!("{}/{}", key.namespace, key.name)
    }

    #[test]
    fn keys_are_ordered_as_their_bytes() {
        let namespaces = ["a", "a-b", "a0", "ab", "prod", "prod-eu", "prod0", "proda"];
        let names = ["a", "a-b", "a.b", "b"];
        let all = || {
            let pairs = namespaces
                .iter()
                .flat_map(|ns| names.map(|name| (*ns, name)));
            pairs.map(|(namespace, name)| key(namespace, name))
        };
        for one in all() {
            for other in all() {
                let bytes = path(&one).cmp(&path(&other));
                assert_eq!(one.cmp(&other), bytes, "{one:?} {other:?}");
            }
        }
        assert!(key("prod-eu", "z") < key("prod", "a"));
        assert!(key("prod", "z") < key("prod0", "a"));
    }

    #[test]
    fn collection_starts_before_its_objects() {
        assert!(key("", "") < key("-", "a"));
        assert!(key("a", "") < key("a", "a"));
        assert!(key("a-b", "z") < key("a", ""));
    }
}
