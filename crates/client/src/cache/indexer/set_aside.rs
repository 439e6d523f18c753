//! Objects that the server has and the cache can't hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_apimachinery::json::RawObject;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The longest reason, in characters: the decoder quotes what it can't read, however long it is.
const REASON_CHARS_MAX: usize = 300;

/// An object whose present state can't be decoded. The cache keeps its last good state, if it had
/// one, and names it here until it can be decoded again or is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Namespace; empty for an object without one.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The version of the state that can't be decoded; empty where that can't be read either.
    pub resource_version: String,
    /// The owners, as far as they can be read.
    pub owners: Vec<SetAsideOwner>,
    /// Why it can't be decoded, cut where it is long.
    pub reason: String,
}

/// An owner of an object that can't be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAsideOwner {
    /// Kind; empty where it can't be read.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl SetAside {
    /// Reads of an object what can be read; none if that isn't even its name.
    pub(crate) fn read(json: &str, reason: &serde_json::Error) -> Option<Self> {
        let metadata: RawObject = member(&RawObject::parse(json).ok()?, "metadata")?;
        let owners: Vec<Box<RawValue>> = member(&metadata, "ownerReferences").unwrap_or_default();
        let owner = |owner: &RawValue| {
            let owner = RawObject::parse(owner.get()).ok()?;
            Some(SetAsideOwner {
                kind: member(&owner, "kind").unwrap_or_default(),
                name: member(&owner, "name")?,
            })
        };
        Some(Self {
            name: member(&metadata, "name").filter(|name: &String| !name.is_empty())?,
            namespace: member(&metadata, "namespace").unwrap_or_default(),
            resource_version: member(&metadata, "resourceVersion").unwrap_or_default(),
            owners: owners.iter().filter_map(|it| owner(it)).collect(),
            reason: Self::reason(reason),
        })
    }

    /// The text of a reason, cut where it is long.
    pub(crate) fn reason(error: &serde_json::Error) -> String {
        let mut text = error.to_string();
        if let Some((end, _)) = text.char_indices().nth(REASON_CHARS_MAX) {
            text.truncate(end);
            text.push('…');
            text.shrink_to_fit();
        }
        text
    }
}

fn member<T: DeserializeOwned>(object: &RawObject, name: &str) -> Option<T> {
    serde_json::from_str(object.get(name)?.get()).ok()
}

/// The objects set aside of one resource, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct SetAsides {
    namespaces: BTreeMap<String, BTreeMap<String, Arc<SetAside>>>,
    /// How many there are in all namespaces.
    len: usize,
}

impl SetAsides {
    /// Adds an object, or renews what is known of it.
    pub(super) fn insert(&mut self, object: SetAside) {
        let names = self.namespaces.entry(object.namespace.clone()).or_default();
        if names
            .insert(object.name.clone(), Arc::new(object))
            .is_none()
        {
            self.len += 1;
        }
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        let Some(names) = self.namespaces.get_mut(namespace) else {
            return;
        };
        if names.remove(name).is_some() {
            self.len -= 1;
        }
        if names.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn contains(&self, namespace: &str, name: &str) -> bool {
        let names = self.namespaces.get(namespace);
        names.is_some_and(|names| names.contains_key(name))
    }

    pub(super) fn of_namespace(&self, namespace: &str) -> Vec<Arc<SetAside>> {
        let names = self.namespaces.get(namespace);
        names.map_or_else(Vec::new, |names| names.values().cloned().collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<SetAside>> {
        self.namespaces.values().flat_map(BTreeMap::values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<SetAside> {
        let reason = serde_json::from_str::<u8>("{}").unwrap_err();
        SetAside::read(json, &reason)
    }

    #[test]
    fn what_can_be_read_is_kept() {
        let object = read(
            r#"{"spec":7,"metadata":{"namespace":"ns","name":"web-0","resourceVersion":7,
                "ownerReferences":[{"name":"web","kind":"DaemonSet"},{"name":"x","kind":7},{"name":1},null]}}"#,
        )
        .unwrap();
        assert_eq!(object.name, "web-0");
        assert_eq!(object.namespace, "ns");
        assert_eq!(object.resource_version, "");
        let owner = |kind: &str, name: &str| SetAsideOwner {
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        assert_eq!(object.owners, [owner("DaemonSet", "web"), owner("", "x")]);
        assert!(object.reason.contains("expected u8"), "{}", object.reason);
    }

    #[test]
    fn a_long_reason_is_cut() {
        let long = format!(r#""{}""#, "ä".repeat(100_000));
        let reason = serde_json::from_str::<u8>(&long).unwrap_err();
        let object = SetAside::read(r#"{"metadata":{"name":"web"}}"#, &reason).unwrap();
        assert_eq!(object.reason.chars().count(), REASON_CHARS_MAX + 1);
        assert!(object.reason.ends_with("ää…"), "{}", object.reason);
        assert!(object.reason.capacity() < 2 * REASON_CHARS_MAX + 10);
    }

    #[test]
    fn objects_are_counted_once_each() {
        let object = |name: &str| SetAside {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            resource_version: String::new(),
            owners: Vec::new(),
            reason: String::new(),
        };
        let mut all = SetAsides::default();
        for name in ["a", "b", "a"] {
            all.insert(object(name));
        }
        assert_eq!((all.len(), all.iter().count()), (2, 2));
        for name in ["a", "c", "a"] {
            all.remove("ns", name);
        }
        all.remove("other", "b");
        assert_eq!((all.len(), all.iter().count()), (1, 1));
    }

    #[test]
    fn an_object_without_a_name_is_not_kept() {
        for json in [
            "7",
            "{}",
            r#"{"metadata":{"name":7}}"#,
            r#"{"metadata":{"name":""}}"#,
        ] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
