//! Objects that exist on the server but can't be decoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_apimachinery::json::RawObject;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum length of an error, in characters. The decoder quotes the text it can't read at full
/// length.
const ERROR_CHARS_MAX: usize = 300;

/// An object whose current state can't be decoded. The cache keeps its last good state, if any, and
/// lists it here until it can be decoded again or is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Namespace; empty for an object without one.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The resource version of that state; empty if unreadable.
    pub resource_version: String,
    /// The owners that can be read.
    pub owners: Vec<SetAsideOwner>,
    /// The decoding error.
    pub error: Undecodable,
}

/// The error of decoding an object: the decoder's text, truncated. The decoder's own error may be as
/// large as the object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Undecodable {
    text: String,
}

impl Undecodable {
    /// Takes the beginning of an error's text.
    pub fn new(error: &serde_json::Error) -> Self {
        let mut text = error.to_string();
        if let Some((end, _)) = text.char_indices().nth(ERROR_CHARS_MAX) {
            text.truncate(end);
            text.push('…');
            text.shrink_to_fit();
        }
        Self { text }
    }

    /// Returns the text, for a field of a log line.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// An owner of an object that can't be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAsideOwner {
    /// Kind; empty if unreadable.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Uid; empty if unreadable.
    pub uid: String,
    /// True if the owner controls the object.
    pub is_controller: bool,
}

impl SetAside {
    /// Reads the readable parts of an object. Returns none if not even its name can be read.
    pub(crate) fn read(json: &str, error: &serde_json::Error) -> Option<Self> {
        let object = RawObject::parse(json).ok()?;
        let metadata: RawObject<'_> = field(&object, "metadata")?;
        let owners: Vec<&RawValue> = field(&metadata, "ownerReferences").unwrap_or_default();
        let owner = |owner: &RawValue| {
            let owner = RawObject::parse(owner.get()).ok()?;
            Some(SetAsideOwner {
                kind: field(&owner, "kind").unwrap_or_default(),
                name: field(&owner, "name")?,
                uid: field(&owner, "uid").unwrap_or_default(),
                is_controller: field(&owner, "controller").unwrap_or_default(),
            })
        };
        Some(Self {
            name: field(&metadata, "name").filter(|name: &String| !name.is_empty())?,
            namespace: field(&metadata, "namespace").unwrap_or_default(),
            resource_version: field(&metadata, "resourceVersion").unwrap_or_default(),
            owners: owners.into_iter().filter_map(owner).collect(),
            error: Undecodable::new(error),
        })
    }
}

fn field<'a, T: Deserialize<'a>>(object: &'a RawObject<'_>, name: &str) -> Option<T> {
    serde_json::from_str(object.get(name)?.get()).ok()
}

/// The set-aside objects of one resource, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct SetAsides {
    namespaces: BTreeMap<String, BTreeMap<String, Arc<SetAside>>>,
    /// Number of objects in all namespaces.
    len: usize,
}

impl SetAsides {
    /// Adds an object or replaces its record.
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
        let error = serde_json::from_str::<u8>("{}").unwrap_err();
        SetAside::read(json, &error)
    }

    #[test]
    fn set_aside_keeps_readable_fields() {
        let object = read(
            r#"{"spec":7,"metadata":{"namespace":"ns","name":"web-0","resourceVersion":7,
                "ownerReferences":[{"name":"web","kind":"DaemonSet","uid":"u","controller":true},
                    {"name":"x","kind":7,"uid":7,"controller":7},{"name":1},null]}}"#,
        )
        .unwrap();
        assert_eq!(object.name, "web-0");
        assert_eq!(object.namespace, "ns");
        assert_eq!(object.resource_version, "");
        let owner = |kind: &str, name: &str, uid: &str, is_controller| SetAsideOwner {
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            is_controller,
        };
        let owners = [
            owner("DaemonSet", "web", "u", true),
            owner("", "x", "", false),
        ];
        assert_eq!(object.owners, owners);
        let error = object.error.to_string();
        assert!(error.contains("expected u8"), "{error}");
    }

    #[test]
    fn long_error_is_truncated() {
        let long = format!(r#""{}""#, "ä".repeat(100_000));
        let error = serde_json::from_str::<u8>(&long).unwrap_err();
        let Undecodable { text } = Undecodable::new(&error);
        assert_eq!(text.chars().count(), ERROR_CHARS_MAX + 1);
        assert!(text.ends_with("ää…"), "{text}");
        assert!(text.capacity() < 2 * ERROR_CHARS_MAX + 10);
    }

    #[test]
    fn set_asides_count_each_object_once() {
        let object = |name: &str| SetAside {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            resource_version: String::new(),
            owners: Vec::new(),
            error: Undecodable {
                text: String::new(),
            },
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
    fn object_without_name_is_dropped() {
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
