//! The record of a recreation: a `ConfigMap` next to the set, from before its deletion until the last
//! adoption.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::{name, text};
use crate::model::Metadata;
use crate::objects::Snapshot;
use crate::plan::new_set;

/// Begin of the record's name.
const PREFIX: &str = "statefulset-controller-manager-recreate-";
/// Label of records, with the value `true`.
const LABEL: &str = "statefulset-controller-manager/recreate";
/// Key of the old manifest.
const OLD: &str = "old.json";
/// Key of the new manifest.
const NEW: &str = "new.json";
/// Key of the objects.
const OBJECTS: &str = "objects.json";

/// A recreation that has begun.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) namespace: String,
    pub(super) set: String,
    /// The set before the recreation, ready to be created.
    pub(super) old: Value,
    /// The set after it, ready to be created.
    pub(super) new: Value,
    pub(super) objects: Objects,
    /// The uid of the stored record; empty before it is stored.
    uid: String,
}

/// Uids of the set and its objects, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Objects {
    /// Uid of the set.
    pub(super) set: String,
    pub(super) pods: BTreeMap<String, String>,
    pub(super) claims: BTreeMap<String, String>,
    pub(super) revisions: BTreeMap<String, String>,
    /// Names of the pods that the plan replaces or removes.
    pub(super) restarts: Vec<String>,
}

impl Record {
    /// The record of a set that becomes another one.
    pub(super) fn new(
        namespace: &str,
        old: &Value,
        new: &Value,
        snapshot: &Snapshot,
        restarts: Vec<String>,
    ) -> Self {
        let set = snapshot.set.as_ref().map(|set| &set.object);
        let pods = set.into_iter().flat_map(|set| snapshot.pods_of(set));
        let revisions = set.map_or_else(Vec::new, |set| snapshot.revisions_of(set));
        Self {
            namespace: namespace.to_owned(),
            set: name(old),
            old: manifest(old),
            new: manifest(new),
            objects: Objects {
                set: text(old, "/metadata/uid"),
                pods: uids(pods.map(|pod| &pod.metadata)),
                claims: uids(snapshot.claims().map(|claim| &claim.metadata)),
                revisions: uids(revisions.into_iter().map(|it| &it.metadata)),
                restarts,
            },
            uid: String::new(),
        }
    }

    /// The record as an object to create.
    pub(super) fn object(&self) -> anyhow::Result<Value> {
        let encoded = serde_json::to_string(&self.objects).context("encode the record")?;
        Ok(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": object_name(&self.set), "labels": {LABEL: "true"}},
            "immutable": true,
            "data": {
                OLD: self.old.to_string(), NEW: self.new.to_string(), OBJECTS: encoded,
            },
        }))
    }

    /// The record in a stored object.
    ///
    /// # Errors
    ///
    /// Another client stored something else under this name.
    pub(super) fn of(namespace: &str, object: &Value) -> anyhow::Result<Self> {
        let read = |key: &str| {
            let text = object.get("data").and_then(|data| data.get(key)?.as_str());
            let action = || format!("read {key} of ConfigMap {}", name(object));
            text.context("the key is missing").with_context(action)
        };
        let decode = |key: &str| -> anyhow::Result<Value> {
            let action = || format!("decode {key} of ConfigMap {}", name(object));
            serde_json::from_str(read(key)?).with_context(action)
        };
        let (old, new) = (decode(OLD)?, decode(NEW)?);
        let objects = serde_json::from_value(decode(OBJECTS)?);
        Ok(Self {
            namespace: namespace.to_owned(),
            set: name(&old),
            old,
            new,
            objects: objects.context("decode the record")?,
            uid: text(object, "/metadata/uid"),
        })
    }

    /// The uid of the stored record.
    pub(super) fn uid(&self) -> &str {
        &self.uid
    }
}

/// Name of the object with a set's record.
pub(super) fn object_name(set: &str) -> String {
    [PREFIX, set].concat()
}

/// Path of the records of all sets of a namespace, or of all namespaces.
pub(super) fn path_of_all(namespace: Option<&str>) -> String {
    let collection = match namespace {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/configmaps"),
        None => "/api/v1/configmaps".to_owned(),
    };
    format!(
        "{collection}?labelSelector={}%3Dtrue",
        LABEL.replace('/', "%2F")
    )
}

/// A set without the fields that the server sets, ready to be created.
pub(super) fn manifest(set: &Value) -> Value {
    let mut manifest = new_set(&name(set), set);
    let owners = set.pointer("/metadata/ownerReferences");
    let metadata = manifest.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Some(owners), Some(metadata)) = (owners, metadata) {
        metadata.insert("ownerReferences".to_owned(), owners.clone());
    }
    manifest
}

fn uids<'a>(objects: impl Iterator<Item = &'a Metadata>) -> BTreeMap<String, String> {
    objects
        .map(|it| (it.name.clone(), it.uid.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let set = |service: &str| {
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
                "metadata": {"name": "web", "labels": {"a": "b"}},
                "spec": {"serviceName": service}})
        };
        let uids = |name: &str| BTreeMap::from([(name.to_owned(), "u".to_owned())]);
        Record {
            namespace: "db".to_owned(),
            set: "web".to_owned(),
            old: set("web"),
            new: set("other"),
            objects: Objects {
                set: "s".to_owned(),
                pods: uids("web-0"),
                claims: uids("data-web-0"),
                revisions: uids("web-1"),
                restarts: vec!["web-0".to_owned()],
            },
            uid: String::new(),
        }
    }

    #[test]
    fn stored_record_is_read_back() {
        let object = record().object().expect("the record is encoded");
        assert_eq!(
            object["metadata"]["name"],
            "statefulset-controller-manager-recreate-web"
        );
        assert_eq!(Record::of("db", &object).expect("it decodes"), record());
    }

    #[test]
    fn foreign_object_is_no_record() {
        let mut object = record().object().expect("the record is encoded");
        object["data"]["new.json"] = Value::Null;
        let error = Record::of("db", &object).unwrap_err();
        let line = "read new.json of ConfigMap statefulset-controller-manager-recreate-web: the key \
                    is missing";
        assert_eq!(format!("{error:#}"), line);
    }

    #[test]
    fn manifest_keeps_owners_and_drops_what_the_server_sets() {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "web", "uid": "u", "resourceVersion": "7", "generation": 3,
                "annotations": {"a": "b"}, "ownerReferences": [{"kind": "Db", "uid": "o"}]},
            "spec": {"replicas": 1}, "status": {"replicas": 1},
        });
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "web", "annotations": {"a": "b"},
                "ownerReferences": [{"kind": "Db", "uid": "o"}]},
            "spec": {"replicas": 1},
        });
        assert_eq!(manifest(&set), expected);
    }
}
