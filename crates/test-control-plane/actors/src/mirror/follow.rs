//! Follows one kind: a list, then watches, and a new list when a watch can't resume.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::object::{Key, MetadataRef, Object};
use kube_test_control_plane_store::store::Store;
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::objects::object;
use super::scope::Scope;

/// Timeout of a watch, the same as in kube-rs.
const WATCH_SECONDS: u32 = 290;
/// Delay after a failure.
const RETRY: Duration = Duration::from_millis(500);

/// The copied objects, and the client that reads them.
pub(super) struct Replica {
    pub(super) client: Client,
    pub(super) store: Store,
    pub(super) scope: Scope,
}

impl Replica {
    /// Lists all objects of a kind and returns the version to watch from. Returns `None` if the
    /// server lacks the kind.
    pub(super) async fn list(&self, kind: &Kind) -> kube::Result<Option<String>> {
        let mut list: Value = match self.get_json(&kind.collection_path("")).await {
            Ok(list) => list,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(err) => return Err(err),
        };
        let version = MetadataRef(list.get("metadata"))
            .resource_version()
            .to_owned();
        let items = match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        let objects = items.into_iter().filter_map(|item| self.held(kind, item));
        self.replace(&kind.storage, objects.collect());
        Ok(Some(version))
    }

    /// Stores a version of an existing object, unless a newer one is known.
    fn put(&self, object: Object) {
        if let Some(known) = self.store.get(&object.key) {
            if known.uid != object.uid {
                self.store.remove_copy(known);
            } else if known.resource_version >= object.resource_version {
                return;
            }
        }
        self.store.put_copy(object);
    }

    /// Stores the final version of a deleted object.
    fn remove(&self, object: Object) {
        let known = self.store.get(&object.key);
        // A new object with this name may exist already.
        if known.is_some_and(|known| known.uid == object.uid) {
            self.store.remove_copy(Arc::new(object));
        }
    }

    /// Replaces all objects of a kind; missing ones are deleted.
    fn replace(&self, storage: &str, objects: Vec<Object>) {
        let left: BTreeSet<&Key> = objects.iter().map(|object| &object.key).collect();
        let (_, mut known) = self.store.list(storage, "");
        known.retain(|object| !left.contains(&object.key));
        for object in known {
            self.store.remove_copy(object);
        }
        for object in objects {
            self.put(object);
        }
    }

    async fn get_json(&self, path: &str) -> kube::Result<Value> {
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    /// Converts a value to an object in the mirrored scope.
    fn held(&self, kind: &Kind, value: Value) -> Option<Object> {
        self.scope.holds(kind, &value).then_some(())?;
        object(kind, value)
    }

    /// Applies the events of one watch. Returns the version to resume from, or `None` after an
    /// error, which requires a new list.
    async fn watch(&self, kind: &Kind, mut version: String) -> Option<String> {
        let path = kind.collection_path("");
        let path = format!(
            "{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}\
             &resourceVersion={version}"
        );
        let request = Request::get(path).body(Vec::new()).ok()?;
        let events = self.client.request_events::<Value>(request).await.ok()?;
        pin_mut!(events);
        while let Some(event) = events.next().await {
            match event.ok()? {
                WatchEvent::Added(value) | WatchEvent::Modified(value) => {
                    version = newer(&value, version);
                    if let Some(object) = self.held(kind, value) {
                        self.put(object);
                    }
                }
                WatchEvent::Deleted(value) => {
                    version = newer(&value, version);
                    if let Some(object) = object(kind, value) {
                        self.remove(object);
                    }
                }
                WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
                WatchEvent::Error(_) => return None,
            }
        }
        Some(version)
    }
}

fn newer(value: &Value, version: String) -> String {
    match MetadataRef(value.get("metadata")).resource_version() {
        "" => version,
        newer => newer.to_owned(),
    }
}

/// Follows a kind from a version until the mirror stops.
pub(super) async fn follow(
    replica: Arc<Replica>,
    stopping: CancellationToken,
    kind: Arc<Kind>,
    version: String,
) {
    let forever = async {
        let mut version = Some(version);
        loop {
            version = match version {
                Some(version) => replica.watch(&kind, version).await,
                None => match replica.list(&kind).await {
                    Ok(version) => version,
                    Err(err) => {
                        tracing::debug!(kind = kind.kind, %err, "listing failed");
                        None
                    }
                },
            };
            if version.is_none() {
                sleep(RETRY).await;
            }
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = forever => {}
    }
}
