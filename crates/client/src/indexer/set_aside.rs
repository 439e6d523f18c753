//! Objects that the server has and the cache can't hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_apimachinery::json::RawObject;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

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
    /// Names of the owners, as far as they can be read.
    pub owners: Vec<String>,
    /// Why it can't be decoded.
    pub reason: String,
}

impl SetAside {
    /// Reads of an object what can be read; none if that isn't even its name.
    pub(crate) fn read(json: &str, reason: &serde_json::Error) -> Option<Self> {
        let metadata: RawObject = member(&RawObject::parse(json).ok()?, "metadata")?;
        let owners: Vec<Box<RawValue>> = member(&metadata, "ownerReferences").unwrap_or_default();
        let owner_name = |owner: &RawValue| member(&RawObject::parse(owner.get()).ok()?, "name");
        Some(Self {
            name: member(&metadata, "name").filter(|name: &String| !name.is_empty())?,
            namespace: member(&metadata, "namespace").unwrap_or_default(),
            resource_version: member(&metadata, "resourceVersion").unwrap_or_default(),
            owners: owners.iter().filter_map(|it| owner_name(it)).collect(),
            reason: reason.to_string(),
        })
    }
}

fn member<T: DeserializeOwned>(object: &RawObject, name: &str) -> Option<T> {
    serde_json::from_str(object.get(name)?.get()).ok()
}

/// The objects set aside of one resource, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct SetAsides(BTreeMap<String, BTreeMap<String, Arc<SetAside>>>);

impl SetAsides {
    /// Adds an object, or renews what is known of it.
    pub(super) fn insert(&mut self, object: SetAside) {
        let names = self.0.entry(object.namespace.clone()).or_default();
        names.insert(object.name.clone(), Arc::new(object));
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        let Some(names) = self.0.get_mut(namespace) else {
            return;
        };
        names.remove(name);
        if names.is_empty() {
            self.0.remove(namespace);
        }
    }

    pub(super) fn contains(&self, namespace: &str, name: &str) -> bool {
        let names = self.0.get(namespace);
        names.is_some_and(|names| names.contains_key(name))
    }

    pub(super) fn of_namespace(&self, namespace: &str) -> Vec<Arc<SetAside>> {
        let names = self.0.get(namespace);
        names.map_or_else(Vec::new, |names| names.values().cloned().collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<SetAside>> {
        self.0.values().flat_map(BTreeMap::values)
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
                "ownerReferences":[{"name":"web"},{"name":1},null]}}"#,
        )
        .unwrap();
        assert_eq!(object.name, "web-0");
        assert_eq!(object.namespace, "ns");
        assert_eq!(object.resource_version, "");
        assert_eq!(object.owners, ["web"]);
        assert!(object.reason.contains("expected u8"), "{}", object.reason);
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
