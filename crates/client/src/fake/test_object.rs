//! A minimal object for cache tests.

use kube_apimachinery::protobuf::{WireError, fields};
use serde::Deserialize;

use crate::cache::indexer::{CachedObject, FromProtobuf, IndexKey};

/// An object with a name, a version, and an owner's uid.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct TestObject {
    metadata: Metadata,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    owner: String,
}

impl TestObject {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        let metadata = Metadata {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            ..Metadata::default()
        };
        Self { metadata }
    }

    /// Makes a set named `web` with this uid the owner; an empty uid makes an orphan.
    pub(crate) fn with_owner(mut self, uid: &str) -> Self {
        uid.clone_into(&mut self.metadata.owner);
        self
    }

    pub(crate) fn with_version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.metadata.resource_version);
        self
    }
}

impl CachedObject for TestObject {
    fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    fn name(&self) -> &str {
        &self.metadata.name
    }

    fn uid(&self) -> &str {
        &self.metadata.uid
    }

    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }

    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(from_protobuf);

    fn decode(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    fn index_values(&self, out: &mut Vec<IndexKey>) {
        let Metadata {
            namespace, owner, ..
        } = &self.metadata;
        out.push(if owner.is_empty() {
            IndexKey::orphans(namespace)
        } else {
            IndexKey::controller(namespace, "StatefulSet", "web", owner)
        });
    }
}

fn from_protobuf(message: &[u8]) -> Result<TestObject, WireError> {
    let mut metadata = Metadata::default();
    for field in fields(message, "TestObject") {
        for field in fields(field?.1.bytes(), "ObjectMeta") {
            match field? {
                (1, name) => name.text()?.clone_into(&mut metadata.name),
                (3, namespace) => namespace.text()?.clone_into(&mut metadata.namespace),
                (6, version) => version.text()?.clone_into(&mut metadata.resource_version),
                _ => {}
            }
        }
    }
    Ok(TestObject { metadata })
}
