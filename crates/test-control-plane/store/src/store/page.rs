//! Reads of collections, page by page, now or as of an earlier revision.

use std::sync::Arc;

use kube_test_control_plane_api::object::{Key, Object};

/// A text after every name.
const LAST: &str = "\u{10FFFF}";

/// The objects of a kind in one namespace or in all, or those from a key on.
#[derive(Clone, Debug)]
pub struct Collection {
    pub(super) first: Key,
    /// A key after the last object.
    pub(super) end: Key,
}

impl Collection {
    /// Returns a kind's objects. An empty `namespace` selects all namespaces.
    pub fn new(storage: &str, namespace: &str) -> Self {
        let end = if namespace.is_empty() {
            Key::of(storage, LAST, "")
        } else {
            Key::of(storage, namespace, LAST)
        };
        Self {
            first: Key::of(storage, namespace, ""),
            end,
        }
    }

    /// Returns the part of the collection that begins with a key.
    #[must_use]
    pub fn starting_at(self, key: Key) -> Self {
        Self {
            first: key.clamp(self.first, self.end.clone()),
            end: self.end,
        }
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.first <= *key && *key < self.end
    }
}

/// The first objects of a collection, in key order.
#[derive(Clone, Debug)]
pub struct ObjectPage {
    /// The revision of the store that the page shows.
    pub revision: u64,
    /// The objects.
    pub objects: Vec<Arc<Object>>,
    /// Number of objects after them.
    pub rest: usize,
}

impl ObjectPage {
    pub(super) fn of<'a>(
        revision: u64,
        mut objects: impl Iterator<Item = (&'a Key, &'a Arc<Object>)>,
        limit: usize,
    ) -> Self {
        let page = objects.by_ref().take(limit);
        Self {
            revision,
            objects: page.map(|(_, object)| Arc::clone(object)).collect(),
            rest: objects.count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube_test_control_plane_api::kinds;
    use kube_test_control_plane_api::object::Draft;
    use serde_json::json;

    use super::*;
    use crate::store::{Expect, Store};

    fn config_map(namespace: &str, name: &str) -> Key {
        Key::of("configmaps", namespace, name)
    }

    fn put(store: &Store, key: Key, expect: Expect) -> u64 {
        let kind = kinds::by_storage("configmaps").unwrap();
        let draft = Draft {
            value: json!({"metadata": {"namespace": &*key.namespace, "name": &*key.name}}),
            data: None,
        };
        store
            .put(kind, key, expect, draft)
            .unwrap()
            .resource_version
    }

    fn names(page: &ObjectPage) -> Vec<String> {
        let key = |object: &Arc<Object>| format!("{}/{}", object.key.namespace, object.key.name);
        page.objects.iter().map(key).collect()
    }

    #[test]
    fn pages_show_one_revision_in_order() {
        let store = Store::new(100);
        for name in ["b", "d"] {
            put(&store, config_map("one", name), Expect::Absent);
        }
        put(&store, config_map("one-more", "a"), Expect::Absent);
        let changed = put(&store, config_map("two", "a"), Expect::Absent);
        let at = store.revision();
        // Afterwards one is gone, one is new, and one is changed.
        let kind = kinds::by_storage("configmaps").unwrap();
        let gone = store.get(&config_map("one", "b")).unwrap();
        let version = gone.resource_version;
        store.delete(kind, gone.key.clone(), version).unwrap();
        put(&store, config_map("one", "c"), Expect::Absent);
        put(&store, config_map("two", "a"), Expect::Version(changed));

        let all = Collection::new("configmaps", "");
        let old = store.page_at(&all, 3, at).unwrap();
        assert_eq!(names(&old), ["one-more/a", "one/b", "one/d"]);
        assert_eq!((old.revision, old.rest), (at, 1));
        let from = all.clone().starting_at(config_map("one", "d\0"));
        let next = store.page_at(&from, 3, at).unwrap();
        assert_eq!(names(&next), ["two/a"]);
        assert_eq!(next.objects[0].resource_version, changed);
        assert_eq!(next.rest, 0);

        let new = store.page(&all, 2);
        assert_eq!(names(&new), ["one-more/a", "one/c"]);
        assert_eq!((new.revision, new.rest), (store.revision(), 2));
        let one = Collection::new("configmaps", "one");
        assert_eq!(names(&store.page(&one, usize::MAX)), ["one/c", "one/d"]);
        let odd = one.starting_at(config_map("three", "a"));
        assert!(store.page(&odd, usize::MAX).objects.is_empty());
    }
}
