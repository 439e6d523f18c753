//! Requests for the dependents of sets, with a record of the writes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kube_apimachinery::json::{Document, to_go_string};
use kube_apimachinery::object_key::ObjectKey;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use statefulset_client::cache::indexer::CachedObject;
use statefulset_client::error::Error;
use statefulset_client::resource::STATEFUL_SETS;
use statefulset_client::rest::{PatchType, RestClient};

use crate::consistency::{ConsistencyStore, TrackedResource};
use crate::controller_ref_manager::SetReader;
use crate::live::Live;
use crate::pod::Pod;
use crate::stateful_set::{StatefulSet, StatefulSetStatus};

/// Timing of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Waits for the client's rate limit, and is sent again if the server asks for it.
    Queued,
    /// Does neither, because it depends on a live read of the set just before it.
    AtOnce,
}

/// A client for sets and their dependents. It reports the version of each write for a set to the
/// consistency store, so that the set's next sync waits until the caches show it.
///
/// A write for a set goes to the set's namespace and returns the text of the stored object.
///
/// # Errors
///
/// Every method returns the error from the API server or the transport. A response without a
/// readable version is a success: the next sync has nothing to wait for.
#[derive(Clone)]
pub struct TrackedClient {
    client: RestClient,
    consistency: Arc<dyn ConsistencyStore>,
}

impl TrackedClient {
    /// Creates a client that reports to `consistency`.
    pub fn new(client: RestClient, consistency: Arc<dyn ConsistencyStore>) -> Self {
        Self {
            client,
            consistency,
        }
    }

    /// Returns the client for writes of this timing.
    #[must_use]
    pub fn timed(&self, timing: Timing) -> Self {
        let mut timed = self.clone();
        if timing == Timing::AtOnce {
            timed.client = self.client.at_once();
        }
        timed
    }

    /// Reads an object live, to change it.
    pub async fn read<K: CachedObject>(
        &self,
        resource: TrackedResource,
        namespace: &str,
        name: &str,
    ) -> Result<Live<K>, Error> {
        let resource = resource.resource();
        let text = self.client.get(resource, namespace, name).await?;
        Live::decode(&text).map_err(|source| Error::Decode {
            action: format!("read {} {namespace}/{name}", resource.kind),
            source,
        })
    }

    /// Reads an object live, with the bytes that the server sent.
    pub async fn read_document(
        &self,
        resource: TrackedResource,
        key: &ObjectKey,
    ) -> Result<Document, Error> {
        let document = self
            .client
            .get_document(resource.resource(), key.namespace(), key.name());
        document.await
    }

    /// Creates a dependent.
    pub async fn create(
        &self,
        set: &StatefulSet,
        resource: TrackedResource,
        body: String,
    ) -> Result<String, Error> {
        let created = self
            .client
            .create(resource.resource(), set.namespace(), body);
        Ok(self.wrote(set, resource, created.await?))
    }

    /// Replaces a dependent.
    pub async fn replace(
        &self,
        set: &StatefulSet,
        resource: TrackedResource,
        name: &str,
        body: impl Into<Vec<u8>>,
    ) -> Result<String, Error> {
        let replaced = self
            .client
            .replace(resource.resource(), set.namespace(), name, body);
        Ok(self.wrote(set, resource, replaced.await?))
    }

    /// Writes a live dependent back, with its resource version.
    pub async fn replace_live<K: CachedObject>(
        &self,
        set: &StatefulSet,
        resource: TrackedResource,
        live: &Live<K>,
    ) -> Result<(), Error> {
        let body = to_go_string(&live.json);
        let replaced = self.replace(set, resource, live.object.name(), body);
        replaced.await.map(drop)
    }

    /// Applies a strategic merge patch to a dependent.
    pub async fn patch(
        &self,
        set: &StatefulSet,
        resource: TrackedResource,
        name: &str,
        patch: String,
    ) -> Result<String, Error> {
        let (kind, patch_type) = (resource.resource(), PatchType::Strategic);
        let patched = self
            .client
            .patch(kind, set.namespace(), name, patch_type, patch);
        Ok(self.wrote(set, resource, patched.await?))
    }

    /// Changes the resources of a pod's containers by a strategic merge patch of `pods/resize`.
    pub async fn resize_pod(
        &self,
        set: &StatefulSet,
        name: &str,
        patch: String,
    ) -> Result<(), Error> {
        let (kind, patch_type) = (TrackedResource::Pods.resource(), PatchType::Strategic);
        let (namespace, client) = (set.namespace(), &self.client);
        let resized = client.patch_subresource(kind, namespace, name, "resize", patch_type, patch);
        self.wrote(set, TrackedResource::Pods, resized.await?);
        Ok(())
    }

    /// Writes the status of a set, with the whole set as body.
    pub async fn replace_status(
        &self,
        set: &StatefulSet,
        status: &StatefulSetStatus,
    ) -> Result<(), Error> {
        let body = set
            .with_status(status)
            .map_err(|error| Error::InvalidRequest(format!("cannot encode a status: {error}")))?;
        let (namespace, name) = (set.namespace(), set.name());
        let replaced = self
            .client
            .replace_status(&STATEFUL_SETS, namespace, name, body);
        self.wrote(set, TrackedResource::StatefulSets, replaced.await?);
        Ok(())
    }

    /// Deletes an object whose metadata has the values of `preconditions`.
    pub async fn delete(
        &self,
        resource: TrackedResource,
        namespace: &str,
        name: &str,
        preconditions: Value,
    ) -> Result<(), Error> {
        let options = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": preconditions,
        });
        let deleted = self
            .client
            .delete(resource.resource(), namespace, name, options.to_string());
        deleted.await.map(drop)
    }

    /// Deletes a pod if its uid is unchanged.
    pub async fn delete_pod(&self, set: &StatefulSet, pod: &Pod) -> Result<(), Error> {
        let uid = json!({"uid": pod.uid});
        self.delete(TrackedResource::Pods, &pod.namespace, &pod.name, uid)
            .await?;
        self.consistency
            .deleted_pod(&set.key(), set.uid(), &pod.key(), &pod.uid);
        Ok(())
    }

    /// Evicts a pod, within its disruption budgets, if its uid is unchanged.
    pub async fn evict_pod(&self, set: &StatefulSet, pod: &Pod) -> Result<(), Error> {
        let (namespace, name) = (&*pod.namespace, &*pod.name);
        let eviction = json!({
            "kind": "Eviction",
            "apiVersion": "policy/v1",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        });
        let (body, pods) = (eviction.to_string(), TrackedResource::Pods.resource());
        let evicted = self
            .client
            .create_subresource(pods, namespace, name, "eviction", body);
        evicted.await?;
        self.consistency
            .deleted_pod(&set.key(), set.uid(), &pod.key(), &pod.uid);
        Ok(())
    }

    /// Reports the version in the response to a write.
    fn wrote(&self, set: &StatefulSet, resource: TrackedResource, answer: String) -> String {
        if let Some(version) = written_version(&answer) {
            self.must_show(set, resource, &version);
        }
        answer
    }

    /// Makes the set's next sync wait until the cache shows this version.
    pub fn must_show(&self, set: &StatefulSet, resource: TrackedResource, version: &str) {
        self.consistency
            .wrote_at(&set.key(), set.uid(), resource, version);
    }
}

#[async_trait]
impl SetReader for TrackedClient {
    async fn read_stateful_set(&self, key: &ObjectKey) -> Result<StatefulSet, Error> {
        self.client.read_stateful_set(key).await
    }
}

/// Returns the version in the response to a write; `None` if it has none, or can't be read. Reads no
/// further: the object comes with a watch.
fn written_version(answer: &str) -> Option<Box<str>> {
    let mut version = None;
    let seed = StringAt {
        path: &["metadata", "resourceVersion"],
        found: &mut version,
    };
    // The error stops the reading.
    let _ = seed.deserialize(&mut serde_json::Deserializer::from_str(answer));
    version
}

/// Reads the string at a path, then stops the parser with an error.
struct StringAt<'a> {
    path: &'a [&'static str],
    found: &'a mut Option<Box<str>>,
}

impl<'de> DeserializeSeed<'de> for StringAt<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.path.is_empty() {
            return deserializer.deserialize_map(self);
        }
        *self.found = Some(Deserialize::deserialize(deserializer)?);
        Err(D::Error::custom("found"))
    }
}

impl<'de> Visitor<'de> for StringAt<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(member) = members.next_key::<Cow<'_, str>>()? {
            match self.path {
                [first, path @ ..] if *first == member => {
                    return members.next_value_seed(StringAt { path, ..self });
                }
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_an_answer_is_read_alone() {
        for (answer, expected) in [
            (
                r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7","uid":"#,
                Some("7"),
            ),
            (
                r#"{"spec":{"metadata":{"resourceVersion":"1"}},"metadata":{"resourceVersion":"2"}}"#,
                Some("2"),
            ),
            (r#"{"metadata":{"resourceVersion":3}}"#, None),
            (r#"{"metadata":{}}"#, None),
            (r#"{"metadata":"a"}"#, None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(written_version(answer).as_deref(), expected, "{answer}");
        }
    }
}
